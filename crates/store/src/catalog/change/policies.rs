//! Policies of topics and namespaces are written and removed.

use async_trait::async_trait;
use forebay_types::Policy;

use super::super::{
    call::{Change, End},
    columns,
    rows::{PolicyWish, PolicyWritten},
};
use crate::{
    error::StoreError,
    sql::{Session, Statement, Value, int_of, scalar},
};

/// Writes a policy, if its row has not changed.
pub(in super::super) struct PutPolicy<'a>(pub(in super::super) &'a PolicyWish);

impl PutPolicy<'_> {
    fn name(&self) -> [Value; 2] {
        [(&*self.0.name.namespace).into(), (&*self.0.name.topic).into()]
    }

    /// The row's version, and whether there is a policy in it.
    async fn found(&self, session: &mut dyn Session) -> Result<(u64, bool), StoreError> {
        let sql = "SELECT version, removed FROM policy WHERE namespace = ? AND topic = ?";
        let rows = session.fetch(Statement::new(sql, self.name().into())).await?;
        let Some(row) = rows.first() else { return Ok((0, false)) };
        Ok((row.u64(0)?, row.int(1)? == 0))
    }

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
        values.extend(self.name());
        session.execute(Statement::new(sql, values)).await.map(drop)
    }

    /// Why there is no room for one more.
    async fn no_room(&self, session: &mut dyn Session) -> Result<Option<PolicyWritten>, StoreError> {
        let count = "SELECT COUNT(*) FROM policy WHERE removed = 0";
        let [namespace, _] = self.name();
        let of_namespace = Statement::new(format!("{count} AND namespace = ?"), vec![namespace]);
        for (statement, most, full) in [
            (of_namespace, self.0.bounds.per_namespace, PolicyWritten::NamespaceFull),
            (Statement::new(count, vec![]), self.0.bounds.in_all, PolicyWritten::Full),
        ] {
            if int_of(&session.fetch(statement).await?)?.unwrap_or(0).cast_unsigned() >= most {
                return Ok(Some(full));
            }
        }
        Ok(None)
    }

    /// Deletes the oldest removed rows, if there are too many. Who has not heard of them reads all rows.
    async fn forget_removed(&self, session: &mut dyn Session) -> Result<(), StoreError> {
        let sql = "SELECT version FROM policy WHERE removed = 1 ORDER BY version DESC LIMIT 1 OFFSET ?";
        let oldest = Statement::new(sql, vec![self.0.bounds.removed.into()]);
        let Some(floor) = int_of(&session.fetch(oldest).await?)? else { return Ok(()) };
        let delete = "DELETE FROM policy WHERE removed = 1 AND version <= ?";
        session.execute(Statement::new(delete, vec![floor.into()])).await?;
        let raise = "UPDATE cluster SET policies_floor = ? WHERE id = 1";
        session.execute(Statement::new(raise, vec![floor.into()])).await.map(drop)
    }

    async fn write(&self, session: &mut dyn Session, version: u64) -> Result<(), StoreError> {
        let columns = columns::OF_POLICY.join(", ");
        let marks = columns::OF_POLICY.map(|_| "?").join(", ");
        let sql = format!(
            "/* forebay policy */ REPLACE INTO policy (namespace, topic, version, {columns}) \
             VALUES (?, ?, ?, {marks})"
        );
        let mut values = Vec::from(self.name());
        values.push(version.into());
        values.extend(columns::of_policy(&self.0.policy));
        session.execute(Statement::new(sql, values)).await.map(drop)
    }
}

#[async_trait]
impl Change for PutPolicy<'_> {
    type Answer = PolicyWritten;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<PolicyWritten>, StoreError> {
        let next = "UPDATE cluster SET policies_version = policies_version + 1 WHERE id = 1";
        session.execute(Statement::new(next, vec![])).await?;
        let (found, is_there) = self.found(session).await?;
        if found != self.0.from_version {
            return Ok(End::RollBack(PolicyWritten::Stale));
        }
        let version = Statement::new("SELECT policies_version FROM cluster WHERE id = 1", vec![]);
        let version = scalar(session.fetch(version).await?, "the cluster")?.u64(0)?;
        self.remove_ended(session, version).await?;
        if !is_there
            && !self.0.policy.is_nothing()
            && let Some(full) = self.no_room(session).await?
        {
            return Ok(End::RollBack(full));
        }
        self.write(session, version).await?;
        self.forget_removed(session).await?;
        Ok(End::Commit(PolicyWritten::Yes(version)))
    }
}
