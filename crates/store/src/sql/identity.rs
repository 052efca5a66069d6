//! Which shard of which cluster a schema is. The first migration writes it, and nothing changes it.

use forebay_types::{ClusterId, ShardId};

use super::statement::{Session, Statement};
use crate::{
    error::{ErrorClass, StoreError},
    rows::ShardIdentity,
};

/// What the schema says of itself. `None`: it says nothing yet.
pub(crate) async fn read(session: &mut dyn Session) -> Result<Option<ShardIdentity>, StoreError> {
    let statement = Statement::new("SELECT shard, cluster FROM identity WHERE id = 1", vec![]);
    let rows = match session.fetch(statement).await {
        Ok(rows) => rows,
        Err(error) if error.class == ErrorClass::Schema => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let shard = u32::try_from(row.u64(0)?).unwrap_or(u32::MAX);
    Ok(Some(ShardIdentity { shard: ShardId(shard), cluster: ClusterId(row.hash(1)?) }))
}

/// Fails unless the schema is this shard's. Returns its cluster.
pub(crate) async fn check(session: &mut dyn Session, shard: ShardId) -> Result<ClusterId, StoreError> {
    match read(session).await? {
        Some(found) if found.shard == shard => Ok(found.cluster),
        Some(found) => Err(other(found, ShardIdentity { shard, cluster: found.cluster })),
        None => {
            let message = "the schema does not say which shard it is: run `forebay migrate`";
            Err(StoreError::new(ErrorClass::Schema, message))
        }
    }
}

/// Writes it, if the schema says nothing yet. Fails if it is another shard.
pub(crate) async fn write(session: &mut dyn Session, ours: ShardIdentity) -> Result<(), StoreError> {
    match read(session).await? {
        Some(found) if found == ours => Ok(()),
        Some(found) => Err(other(found, ours)),
        None => {
            let sql = "INSERT INTO identity (id, shard, cluster) VALUES (1, ?, ?)";
            let values = vec![ours.shard.0.into(), ours.cluster.0.as_slice().into()];
            session.execute(Statement::new(sql, values)).await.map(drop)
        }
    }
}

fn other(found: ShardIdentity, ours: ShardIdentity) -> StoreError {
    let message = format!("the schema is {found}; it is configured as {ours}: are two URLs swapped?");
    StoreError::new(ErrorClass::Schema, message)
}
