//! Reads what is wanted of one topic or namespace, or set in all of them.

use async_trait::async_trait;
use forebay_types::{Namespace, Policy, PolicyRow, SettingsRow, TopicName, TopicSettings};

use super::{
    call::{Call, Failure},
    columns,
    rows::SettingsSnapshot,
    session::CatalogSession,
};
use crate::{
    error::StoreError,
    sql::{Row, Statement, Value, int_of},
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

/// Reads all settings of a namespace, or of all namespaces.
pub(super) struct ReadAllSettings<'a>(pub(super) Option<&'a Namespace>);

#[async_trait]
impl Call for ReadAllSettings<'_> {
    type Answer = SettingsSnapshot;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<SettingsSnapshot, Failure> {
        let columns: String = columns::OF_SETTINGS.iter().map(|column| format!(", {column}")).collect();
        let (of_namespace, values) = of_namespace(self.0);
        let sql =
            format!("SELECT namespace, topic, version{columns} FROM setting WHERE removed = 0{of_namespace}");
        let queries = vec![Statement::new(sql, values), settings_version(self.0)];
        let mut answers = session.snapshot(queries).await?.into_iter();
        let found = answers.next().unwrap_or_default();
        let mut rows = found.iter().map(columns::settings).collect::<Result<Vec<_>, _>>()?;
        // By bytes, whatever order the server has for texts.
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        let version = int_of(&answers.next().unwrap_or_default())?.unwrap_or(0).cast_unsigned();
        Ok(SettingsSnapshot { rows, version })
    }
}

/// Asks for the version of all settings of a namespace, or of all namespaces. The highest version of the rows
/// alone would fall when a removed one is deleted, and could then be one that was told before.
pub(super) fn settings_version(namespace: Option<&Namespace>) -> Statement {
    let (of_namespace, values) = of_namespace(namespace);
    let sql = format!(
        "SELECT MAX(version) FROM (SELECT MAX(version) AS version FROM setting WHERE 1 = 1{of_namespace} \
         UNION ALL SELECT policies_floor FROM cluster WHERE id = 1) AS versions"
    );
    Statement::new(sql, values)
}

/// The condition that a row is of the namespace, and its value.
fn of_namespace(namespace: Option<&Namespace>) -> (&'static str, Vec<Value>) {
    match namespace {
        Some(namespace) => (" AND namespace = ?", vec![(&**namespace).into()]),
        None => ("", vec![]),
    }
}
