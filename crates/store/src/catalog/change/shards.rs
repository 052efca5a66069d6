//! Shards are added, drained and removed.

use async_trait::async_trait;
use forebay_types::ShardId;

use super::{
    super::{
        call::{Change, End},
        columns,
        error::CatalogError,
        rows::CatalogShardState,
    },
    assignment,
};
use crate::{
    error::StoreError,
    sql::{Session, Statement, int_of, scalar},
};

fn next_version() -> Statement {
    Statement::new("UPDATE cluster SET shards_version = shards_version + 1 WHERE id = 1", vec![])
}

/// The same, if the shards still have a version. Returns whether they have.
async fn advance(session: &mut dyn Session, from_version: u64) -> Result<bool, StoreError> {
    let sql = "UPDATE cluster SET shards_version = shards_version + 1 WHERE id = 1 AND shards_version = ?";
    Ok(session.execute(Statement::new(sql, vec![from_version.into()])).await? == 1)
}

/// The shard at a URL.
async fn with_url(session: &mut dyn Session, url: &str) -> Result<Option<ShardId>, StoreError> {
    let sql = "SELECT id FROM shard WHERE url = ?";
    let rows = session.fetch(Statement::new(sql, vec![url.into()])).await?;
    rows.first().map(|row| Ok(ShardId(row.u32(0)?))).transpose()
}

/// Adds an active shard. Its URL has been checked.
pub(in super::super) struct AddShard<'a> {
    /// Where it is.
    pub(in super::super) url: &'a str,
    /// Its number, or the next one that no shard has had.
    pub(in super::super) id: Option<ShardId>,
}

impl AddShard<'_> {
    async fn number(&self, session: &mut dyn Session) -> Result<ShardId, StoreError> {
        if let Some(id) = self.id {
            return Ok(id);
        }
        let last = Statement::new("SELECT last_shard FROM cluster WHERE id = 1", vec![]);
        let last = scalar(session.fetch(last).await?, "the cluster")?.u32(0)?;
        // After the last number of all, the shard that has it is in the way.
        Ok(ShardId(last.saturating_add(1)))
    }

    /// Why the shard can't be added.
    async fn refusal(
        &self,
        session: &mut dyn Session,
        id: ShardId,
    ) -> Result<Option<CatalogError>, StoreError> {
        if let Some(other) = with_url(session, self.url).await? {
            return Ok(Some(CatalogError::UrlTaken(other)));
        }
        let with_id = Statement::new("SELECT 1 FROM shard WHERE id = ?", vec![id.0.into()]);
        let taken = int_of(&session.fetch(with_id).await?)?.is_some();
        Ok(taken.then_some(CatalogError::NumberTaken(id)))
    }
}

#[async_trait]
impl Change for AddShard<'_> {
    type Answer = Result<ShardId, CatalogError>;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<Self::Answer>, StoreError> {
        session.execute(next_version()).await?;
        let id = self.number(session).await?;
        if let Some(refusal) = self.refusal(session, id).await? {
            return Ok(End::RollBack(Err(refusal)));
        }
        let state = columns::of_state(CatalogShardState::Active);
        let sql = "INSERT INTO shard (id, url, state) VALUES (?, ?, ?)";
        session.execute(Statement::new(sql, vec![id.0.into(), self.url.into(), state])).await?;
        let sql = "UPDATE cluster SET last_shard = ? WHERE id = 1 AND last_shard < ?";
        session.execute(Statement::new(sql, vec![id.0.into(), id.0.into()])).await?;
        Ok(End::Commit(Ok(id)))
    }
}

/// Changes where a shard is. Its URL has been checked.
pub(in super::super) struct SetShardUrl<'a> {
    /// The shard.
    pub(in super::super) id: ShardId,
    /// Where it is now.
    pub(in super::super) url: &'a str,
    /// The version of the shards from which that was decided.
    pub(in super::super) from_version: u64,
}

#[async_trait]
impl Change for SetShardUrl<'_> {
    type Answer = Result<(), CatalogError>;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<Self::Answer>, StoreError> {
        if !advance(session, self.from_version).await? {
            return Ok(End::RollBack(Err(CatalogError::Stale)));
        }
        if let Some(other) = with_url(session, self.url).await?.filter(|other| *other != self.id) {
            return Ok(End::RollBack(Err(CatalogError::UrlTaken(other))));
        }
        let sql = "UPDATE shard SET url = ? WHERE id = ?";
        let values = vec![self.url.into(), self.id.0.into()];
        Ok(if_one(session.execute(Statement::new(sql, values)).await?, self.id))
    }
}

/// Changes what operators want of a shard.
pub(in super::super) struct SetShardState {
    /// The shard.
    pub(in super::super) id: ShardId,
    /// The state that they wish for.
    pub(in super::super) state: CatalogShardState,
    /// The version of the shards from which they decided.
    pub(in super::super) from_version: u64,
}

#[async_trait]
impl Change for SetShardState {
    type Answer = Result<(), CatalogError>;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<Self::Answer>, StoreError> {
        if !advance(session, self.from_version).await? {
            return Ok(End::RollBack(Err(CatalogError::Stale)));
        }
        let sql = "UPDATE shard SET state = ? WHERE id = ?";
        let values = vec![columns::of_state(self.state), self.id.0.into()];
        Ok(if_one(session.execute(Statement::new(sql, values)).await?, self.id))
    }
}

/// Removes a shard.
pub(in super::super) struct RemoveShard {
    /// The shard.
    pub(in super::super) id: ShardId,
    /// The version of the shards from which that was decided.
    pub(in super::super) from_version: u64,
}

#[async_trait]
impl Change for RemoveShard {
    type Answer = Result<(), CatalogError>;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<Self::Answer>, StoreError> {
        if !advance(session, self.from_version).await? {
            return Ok(End::RollBack(Err(CatalogError::Stale)));
        }
        if session.execute(assignment::remove(&[self.id])).await? > 0 {
            let sql = "UPDATE cluster SET assignment_version = assignment_version + 1 WHERE id = 1";
            session.execute(Statement::new(sql, vec![])).await?;
        }
        let sql = "DELETE FROM shard WHERE id = ?";
        Ok(if_one(session.execute(Statement::new(sql, vec![self.id.0.into()])).await?, self.id))
    }
}

fn if_one(matched: u64, id: ShardId) -> End<Result<(), CatalogError>> {
    if matched == 1 { End::Commit(Ok(())) } else { End::RollBack(Err(CatalogError::NoShard(id))) }
}
