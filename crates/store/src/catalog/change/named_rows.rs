//! Rows of topics and namespaces: of `policy` and of `setting`. Both tables have the same keys, versions and
//! bounds.

use std::collections::BTreeSet;

use forebay_types::TopicName;

use super::super::rows::{PolicyBounds, PolicyOutcome};
use crate::{
    error::StoreError,
    sql::{Session, Statement, Value, int_of, row_counts, scalar},
};

/// The values of one statement. A server takes at least so much.
const STATEMENT_BYTES: usize = 256 << 10;

/// The next version of policies and settings. It locks the row of the cluster.
pub(super) async fn next_version(session: &mut dyn Session) -> Result<u64, StoreError> {
    let next = "UPDATE cluster SET policies_version = policies_version + 1 WHERE id = 1";
    session.execute(Statement::new(next, vec![])).await?;
    let version = Statement::new("SELECT policies_version FROM cluster WHERE id = 1", vec![]);
    scalar(session.fetch(version).await?, "the cluster")?.u64(0)
}

/// One of the two tables.
pub(super) struct NamedRows<'a> {
    /// Its name.
    pub table: &'static str,
    /// Bounds of the table.
    pub bounds: PolicyBounds,
    /// From whom the rights descend of who changes it. Empty: an operator does.
    pub root: &'a str,
}

impl NamedRows<'_> {
    /// The version of a row, and whether there is something in it.
    pub async fn found(
        &self,
        session: &mut dyn Session,
        name: &TopicName,
    ) -> Result<(u64, bool), StoreError> {
        let table = self.table;
        let sql = format!("SELECT version, removed FROM {table} WHERE namespace = ? AND topic = ?");
        let rows = session.fetch(Statement::new(sql, values_of(name).into())).await?;
        let Some(row) = rows.first() else { return Ok((0, false)) };
        Ok((row.u64(0)?, row.int(1)? == 0))
    }

    /// How many rows there are.
    pub async fn in_all(&self, session: &mut dyn Session) -> Result<u64, StoreError> {
        self.count(session, "", vec![]).await
    }

    /// How many rows there are, where this is so.
    async fn count(
        &self,
        session: &mut dyn Session,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        let sql = format!("SELECT COUNT(*) FROM {} WHERE removed = 0{condition}", self.table);
        Ok(int_of(&session.fetch(Statement::new(sql, values)).await?)?.unwrap_or(0).cast_unsigned())
    }

    /// How many rows the root has. An operator's are not counted.
    async fn of_root(&self, session: &mut dyn Session) -> Result<u64, StoreError> {
        match self.root {
            "" => Ok(0),
            root => self.count(session, " AND root = ?", vec![root.into()]).await,
        }
    }

    /// How many there may be in all once the root, which has so many, has one more.
    fn most(&self, of_root: u64) -> u64 {
        self.bounds.by_root.in_all_for(self.root.is_empty(), of_root)
    }

    /// Why there is no room for one more.
    pub async fn no_room(
        &self,
        session: &mut dyn Session,
        name: &TopicName,
    ) -> Result<Option<PolicyOutcome>, StoreError> {
        let [namespace, _] = values_of(name);
        if self.count(session, " AND namespace = ?", vec![namespace]).await? >= self.bounds.per_namespace {
            return Ok(Some(PolicyOutcome::NamespaceFull));
        }
        let of_root = self.of_root(session).await?;
        if of_root >= self.bounds.by_root.per_root {
            return Ok(Some(PolicyOutcome::RootFull));
        }
        let all = self.in_all(session).await?;
        Ok((all >= self.most(of_root)).then_some(PolicyOutcome::Full))
    }

    /// Whether there are more than there may be, of the namespaces of these names, of the root or in all.
    /// `before`: as many were there. Where there are not more by now, they may stay.
    pub async fn too_many(
        &self,
        session: &mut dyn Session,
        names: impl Iterator<Item = &TopicName>,
        before: u64,
    ) -> Result<Option<PolicyOutcome>, StoreError> {
        let of_root = self.of_root(session).await?;
        if of_root > self.bounds.by_root.per_root {
            return Ok(Some(PolicyOutcome::RootFull));
        }
        let most = self.most(of_root.saturating_sub(1));
        if self.in_all(session).await? > most.max(before) {
            return Ok(Some(PolicyOutcome::Full));
        }
        // One question, whatever number of namespaces the names are of.
        let over = format!(
            "SELECT namespace FROM {} WHERE removed = 0 GROUP BY namespace HAVING COUNT(*) > ?",
            self.table
        );
        let over = session.fetch(Statement::new(over, vec![self.bounds.per_namespace.into()])).await?;
        if over.is_empty() {
            return Ok(None);
        }
        let namespaces: BTreeSet<&str> = names.map(|name| &*name.namespace).collect();
        for row in &over {
            if namespaces.contains(row.str(0)?) {
                return Ok(Some(PolicyOutcome::NamespaceFull));
            }
        }
        Ok(None)
    }

    /// Writes rows, in few statements: these columns beside the name, the version and the root.
    pub async fn write(
        &self,
        session: &mut dyn Session,
        version: u64,
        columns: &[&str],
        written: impl Iterator<Item = (&TopicName, Vec<Value>)>,
    ) -> Result<(), StoreError> {
        let columns = [&["namespace", "topic", "version", "root"], columns].concat();
        let row = |(name, of_columns): (&TopicName, Vec<Value>)| {
            let mut values = Vec::from(values_of(name));
            values.extend([version.into(), self.root.into()]);
            values.extend(of_columns);
            values
        };
        let verb = "/* forebay policy */ REPLACE";
        let rows = written.map(row).collect();
        for statement in row_counts::insert(verb, self.table, &columns, rows, STATEMENT_BYTES) {
            session.execute(statement).await?;
        }
        Ok(())
    }

    /// Deletes the oldest removed rows, if there are too many. Who has not heard of them reads all rows, of
    /// both tables.
    pub async fn forget_removed(&self, session: &mut dyn Session) -> Result<(), StoreError> {
        let table = self.table;
        let sql =
            format!("SELECT version FROM {table} WHERE removed = 1 ORDER BY version DESC LIMIT 1 OFFSET ?");
        let oldest = Statement::new(sql, vec![self.bounds.removed.into()]);
        let Some(floor) = int_of(&session.fetch(oldest).await?)? else { return Ok(()) };
        let delete = format!("DELETE FROM {table} WHERE removed = 1 AND version <= ?");
        session.execute(Statement::new(delete, vec![floor.into()])).await?;
        // The other table may have raised it further.
        let raise = "UPDATE cluster SET policies_floor = ? WHERE id = 1 AND policies_floor < ?";
        session.execute(Statement::new(raise, vec![floor.into(); 2])).await.map(drop)
    }
}

/// The values of `namespace` and `topic`.
pub(super) fn values_of(name: &TopicName) -> [Value; 2] {
    [(&*name.namespace).into(), (&*name.topic).into()]
}
