//! Contents that are left in a shard that is to be removed.

use crate::{
    error::StoreError,
    rows::Remains,
    sql::{
        Dialect,
        statement::{Session, Statement, scalar},
    },
};

use super::load::generations_of;

/// Looks at every table that holds something for somebody.
pub(crate) async fn remains(session: &mut dyn Session, dialect: Dialect) -> Result<Remains, StoreError> {
    let count = |sql| Statement::new(sql, vec![]);
    let items = session.fetch(count("SELECT COUNT(*) FROM item")).await?;
    let dead = session.fetch(count("SELECT COUNT(*), MAX(expires_at) FROM dead_letter")).await?;
    let due = session.fetch(count("SELECT MAX(deliver_at) FROM schedule")).await?;
    let dead = scalar(dead, "the dead letters")?;
    let mut remains = Remains {
        items: scalar(items, "the items")?.u64(0)?,
        dead_letters: dead.u64(0)?,
        dead_letters_until: dead.optional_time(1)?,
        last_due: scalar(due, "the schedule")?.optional_time(0)?,
        last_key: None,
    };
    for generation in generations_of(&session.fetch(count(dialect.generations())).await?)? {
        // A row without an answer says that an item was removed: its key is free.
        let keys = format!("SELECT MAX(at) FROM dedupe_{generation} WHERE LENGTH(answer) > 0");
        let last = session.fetch(Statement::new(keys, vec![]));
        remains.last_key = remains.last_key.max(scalar(last.await?, "the keys")?.optional_time(0)?);
    }
    Ok(remains)
}
