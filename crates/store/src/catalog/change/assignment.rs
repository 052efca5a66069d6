//! Changes homes of shards.

use std::collections::BTreeMap;

use async_trait::async_trait;
use forebay_types::ShardId;

use super::super::{
    call::{Change, End},
    rows::Home,
};
use crate::{
    error::StoreError,
    sql::{Session, Statement},
};

/// Rows of one statement.
const ROWS_MAX: usize = 500;

/// Changes homes, if the assignment still has a version.
pub(in super::super) struct Assign<'a> {
    /// The version.
    pub(in super::super) from_version: u64,
    /// The homes; `None` takes a shard's home away.
    pub(in super::super) changes: &'a BTreeMap<ShardId, Option<Home>>,
}

#[async_trait]
impl Change for Assign<'_> {
    type Answer = bool;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<bool>, StoreError> {
        let advance = Statement::new(
            "/* forebay assign */ UPDATE cluster SET assignment_version = assignment_version + 1 \
             WHERE id = 1 AND assignment_version = ?",
            vec![self.from_version.into()],
        );
        if session.execute(advance).await? != 1 {
            return Ok(End::RollBack(false));
        }
        let homes: Vec<_> =
            self.changes.iter().filter_map(|(id, home)| Some((*id, home.as_ref()?))).collect();
        for homes in homes.chunks(ROWS_MAX) {
            session.execute(write(homes)).await?;
        }
        let gone: Vec<_> =
            self.changes.iter().filter(|(_, home)| home.is_none()).map(|(id, _)| *id).collect();
        for gone in gone.chunks(ROWS_MAX) {
            session.execute(remove(gone)).await?;
        }
        Ok(End::Commit(true))
    }
}

fn write(homes: &[(ShardId, &Home)]) -> Statement {
    let marks = vec!["(?, ?, ?)"; homes.len()].join(", ");
    let row = |(id, home): &(ShardId, &Home)| {
        [id.0.into(), home.node.as_str().into(), i64::from(home.pinned).into()]
    };
    let sql = format!("REPLACE INTO assignment (shard, node, pinned) VALUES {marks}");
    Statement::new(sql, homes.iter().flat_map(row).collect())
}

/// Takes homes away.
pub(super) fn remove(shards: &[ShardId]) -> Statement {
    let marks = vec!["?"; shards.len()].join(", ");
    let sql = format!("DELETE FROM assignment WHERE shard IN ({marks})");
    Statement::new(sql, shards.iter().map(|id| id.0.into()).collect())
}
