//! Reads what is wanted of one topic or namespace.

use async_trait::async_trait;
use forebay_types::{Policy, PolicyRow, SettingsRow, TopicName, TopicSettings};

use super::{
    call::{Call, Failure},
    columns,
    session::CatalogSession,
};
use crate::{
    error::StoreError,
    sql::{Row, Statement},
};

/// The row of a name, from `namespace`, `topic`, `version` and these columns.
async fn row(
    session: &mut dyn CatalogSession,
    table: &str,
    columns: &[&str],
    name: &TopicName,
) -> Result<Option<Row>, StoreError> {
    let columns: String = columns.iter().map(|column| format!(", {column}")).collect();
    let sql =
        format!("SELECT namespace, topic, version{columns} FROM {table} WHERE namespace = ? AND topic = ?");
    let values = vec![(&*name.namespace).into(), (&*name.topic).into()];
    let rows = session.snapshot(vec![Statement::new(sql, values)]).await?;
    Ok(rows.into_iter().flatten().next())
}

/// Reads one policy.
pub(super) struct ReadPolicy<'a>(pub(super) &'a TopicName);

#[async_trait]
impl Call for ReadPolicy<'_> {
    type Answer = PolicyRow;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<PolicyRow, Failure> {
        let found = row(session, "policy", &columns::OF_POLICY, self.0).await?;
        let none = || PolicyRow { name: self.0.clone(), version: 0, policy: Policy::default() };
        Ok(found.as_ref().map(columns::policy).transpose()?.unwrap_or_else(none))
    }
}

/// Reads the settings of one topic or namespace.
pub(super) struct ReadSettings<'a>(pub(super) &'a TopicName);

#[async_trait]
impl Call for ReadSettings<'_> {
    type Answer = SettingsRow;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<SettingsRow, Failure> {
        let found = row(session, "setting", &columns::OF_SETTINGS, self.0).await?;
        let none = || SettingsRow { name: self.0.clone(), version: 0, settings: TopicSettings::default() };
        Ok(found.as_ref().map(columns::settings).transpose()?.unwrap_or_else(none))
    }
}

/// Reads all settings, removed ones included.
pub(super) struct ReadAllSettings;

#[async_trait]
impl Call for ReadAllSettings {
    type Answer = Vec<SettingsRow>;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<Vec<SettingsRow>, Failure> {
        let columns: String = columns::OF_SETTINGS.iter().map(|column| format!(", {column}")).collect();
        let sql = format!("SELECT namespace, topic, version{columns} FROM setting");
        let rows = session.snapshot(vec![Statement::new(sql, vec![])]).await?;
        let mut rows = rows.iter().flatten().map(columns::settings).collect::<Result<Vec<_>, _>>()?;
        // By bytes, whatever order the server has for texts.
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(rows)
    }
}
