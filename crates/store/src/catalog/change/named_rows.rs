//! Rows of topics and namespaces: of `policy` and of `setting`. Both tables have the same keys, versions and
//! bounds.

use std::collections::BTreeSet;

use forebay_types::TopicName;

use super::super::rows::{PolicyBounds, PolicyWritten};
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
pub(super) struct NamedRows {
    /// Its name.
    pub table: &'static str,
    /// What it may hold.
    pub bounds: PolicyBounds,
}

impl NamedRows {
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

    /// Why there is no room for one more.
    pub async fn no_room(
        &self,
        session: &mut dyn Session,
        name: &TopicName,
    ) -> Result<Option<PolicyWritten>, StoreError> {
        let count = format!("SELECT COUNT(*) FROM {} WHERE removed = 0", self.table);
        let [namespace, _] = values_of(name);
        let of_namespace = Statement::new(format!("{count} AND namespace = ?"), vec![namespace]);
        for (statement, most, full) in [
            (of_namespace, self.bounds.per_namespace, PolicyWritten::NamespaceFull),
            (Statement::new(count, vec![]), self.bounds.in_all, PolicyWritten::Full),
        ] {
            if int_of(&session.fetch(statement).await?)?.unwrap_or(0).cast_unsigned() >= most {
                return Ok(Some(full));
            }
        }
        Ok(None)
    }

    /// Whether there are more than there may be, of the namespaces of these names or in all.
    pub async fn too_many(
        &self,
        session: &mut dyn Session,
        names: impl Iterator<Item = &TopicName>,
    ) -> Result<Option<PolicyWritten>, StoreError> {
        let count = format!("SELECT COUNT(*) FROM {} WHERE removed = 0", self.table);
        let all = int_of(&session.fetch(Statement::new(count, vec![])).await?)?.unwrap_or(0);
        if all.cast_unsigned() > self.bounds.in_all {
            return Ok(Some(PolicyWritten::Full));
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
                return Ok(Some(PolicyWritten::NamespaceFull));
            }
        }
        Ok(None)
    }

    /// Writes rows, in few statements: these columns beside the name and the version.
    pub async fn write(
        &self,
        session: &mut dyn Session,
        version: u64,
        columns: &[&str],
        written: impl Iterator<Item = (&TopicName, Vec<Value>)>,
    ) -> Result<(), StoreError> {
        let columns = [&["namespace", "topic", "version"], columns].concat();
        let row = |(name, of_columns): (&TopicName, Vec<Value>)| {
            let mut values = Vec::from(values_of(name));
            values.push(version.into());
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
