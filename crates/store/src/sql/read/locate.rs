//! Where an item is that is not leased.

use forebay_types::Seq;

use super::{ReadConnection, Statement};
use crate::{StoreError, sql::int_of};

pub(super) async fn locate(source: &dyn ReadConnection, seq: Seq) -> Result<Option<bool>, StoreError> {
    let sql = "SELECT 0 FROM item WHERE seq = ? UNION ALL SELECT 1 FROM dead_letter WHERE seq = ?";
    let rows = source.fetch(Statement::new(sql, vec![seq.into(), seq.into()])).await?;
    Ok(int_of(&rows)?.map(|dead| dead == 1))
}
