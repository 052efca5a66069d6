//! Policies of topics and namespaces are written.

use async_trait::async_trait;
use forebay_types::Policy;

use super::{
    super::{
        call::{Change, End},
        columns,
        rows::{PolicyOutcome, PolicyWish},
    },
    named_rows::{NamedRows, next_version, values_of},
};
use crate::{
    error::StoreError,
    sql::{Session, Statement},
};

/// Writes a policy, if its row has not changed.
pub(in super::super) struct PutPolicy<'a>(pub(in super::super) &'a PolicyWish);

impl PutPolicy<'_> {
    /// Removes other policies of which nothing is left.
    async fn remove_ended(&self, session: &mut dyn Session, version: u64) -> Result<(), StoreError> {
        let columns = columns::OF_POLICY.map(|column| format!("{column} = ?")).join(", ");
        let sql = format!(
            "UPDATE policy SET {columns}, version = ? WHERE removed = 0 \
             AND (enqueue_paused_at IS NULL OR enqueue_paused_until < ?) \
             AND (dequeue_paused_at IS NULL OR dequeue_paused_until < ?) \
             AND NOT (namespace = ? AND topic = ?)"
        );
        let mut values = columns::of_policy(&Policy::default());
        let end = self.0.ended_before;
        values.extend([version.into(), end.into(), end.into()]);
        values.extend(values_of(&self.0.name));
        session.execute(Statement::new(sql, values)).await.map(drop)
    }
}

#[async_trait]
impl Change for PutPolicy<'_> {
    type Answer = PolicyOutcome;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<PolicyOutcome>, StoreError> {
        let PolicyWish { name, from_version, policy, root, bounds, .. } = self.0;
        let rows = NamedRows { table: "policy", bounds: *bounds, root };
        let version = next_version(session).await?;
        let (found, is_there) = rows.found(session, name).await?;
        if found != *from_version {
            return Ok(End::RollBack(PolicyOutcome::Stale));
        }
        self.remove_ended(session, version).await?;
        if !is_there
            && !policy.is_nothing()
            && let Some(full) = rows.no_room(session, name).await?
        {
            return Ok(End::RollBack(full));
        }
        let written = (name, columns::of_policy(policy));
        rows.write(session, version, &columns::OF_POLICY, [written].into_iter()).await?;
        rows.forget_removed(session).await?;
        Ok(End::Commit(PolicyOutcome::Yes(version)))
    }
}
