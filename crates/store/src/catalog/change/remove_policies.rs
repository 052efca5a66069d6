//! Policies and settings of a topic, or of a namespace with all of its topics, are removed.

use async_trait::async_trait;
use forebay_types::{Policy, TopicSettings};

use super::{
    super::{
        call::{Change, End},
        columns,
        rows::PolicyRemoval,
    },
    named_rows::{NamedRows, next_version},
};
use crate::{
    error::StoreError,
    sql::{Session, Statement, Value},
};

/// Removes policies and settings.
pub(in super::super) struct RemovePolicies<'a>(pub(in super::super) &'a PolicyRemoval);

impl RemovePolicies<'_> {
    /// Leaves removed rows of which nodes learn. Returns how many.
    async fn remove(
        &self,
        session: &mut dyn Session,
        table: &'static str,
        columns: &[&str],
        mut values: Vec<Value>,
        version: u64,
    ) -> Result<u64, StoreError> {
        let PolicyRemoval { namespace, topic, bounds } = self.0;
        let columns: String = columns.iter().map(|column| format!("{column} = ?, ")).collect();
        let of_topic = if topic.is_some() { " AND topic = ?" } else { "" };
        let sql =
            format!("UPDATE {table} SET {columns}version = ? WHERE removed = 0 AND namespace = ?{of_topic}");
        values.extend([version.into(), (&**namespace).into()]);
        values.extend(topic.iter().map(|topic| Value::from(&**topic)));
        let removed = session.execute(Statement::new(sql, values)).await?;
        NamedRows { table, bounds: *bounds, root: "" }.forget_removed(session).await?;
        Ok(removed)
    }
}

#[async_trait]
impl Change for RemovePolicies<'_> {
    type Answer = Option<u64>;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<Option<u64>>, StoreError> {
        let version = next_version(session).await?;
        let none = columns::of_policy(&Policy::default());
        let policies = self.remove(session, "policy", &columns::OF_POLICY, none, version).await?;
        let none = columns::of_settings(&TopicSettings::default());
        let settings = self.remove(session, "setting", &columns::OF_SETTINGS, none, version).await?;
        Ok(if policies + settings == 0 { End::RollBack(None) } else { End::Commit(Some(version)) })
    }
}
