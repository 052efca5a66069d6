//! Which shard of which cluster a schema is. The first migration writes it, and nothing changes it.

use async_trait::async_trait;
use forebay_types::{ClusterId, ShardId};

use super::{
    statement::{Session, Statement},
    version::Identity,
};
use crate::{
    error::{ErrorClass, StoreError},
    rows::ShardIdentity,
};

/// Returns the identity that the schema holds. `None`: it holds none yet.
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

#[async_trait]
impl Identity for ShardIdentity {
    async fn write(&self, session: &mut dyn Session) -> Result<(), StoreError> {
        match read(session).await? {
            Some(found) if found == *self => Ok(()),
            Some(found) => Err(other(found, *self)),
            None => {
                let sql = "INSERT INTO identity (id, shard, cluster) VALUES (1, ?, ?)";
                let values = vec![self.shard.0.into(), self.cluster.0.as_slice().into()];
                session.execute(Statement::new(sql, values)).await.map(drop)
            }
        }
    }
}

fn other(found: ShardIdentity, ours: ShardIdentity) -> StoreError {
    let message = format!("the schema is {found}; it is configured as {ours}: are two URLs swapped?");
    StoreError::new(ErrorClass::Schema, message)
}
