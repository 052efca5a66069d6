//! A schema's migrations, and the version that they have brought it to.

use async_trait::async_trait;

use super::statement::{Session, Statement, int_of};
use crate::error::{ErrorClass, MigrateError, StoreError};

/// A kind of schema on one kind of database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    /// What it is, for messages.
    pub(crate) what: &'static str,
    /// The command that creates or upgrades it.
    pub(crate) command: &'static str,
    /// A table that every version of it has, and no other kind of schema.
    pub(crate) table: &'static str,
    /// Every version with its statements, in order.
    pub(crate) migrations: &'static [(u32, &'static str)],
}

impl Schema {
    /// A shard.
    pub(crate) const fn shard(migrations: &'static [(u32, &'static str)]) -> Self {
        Self { what: "shard", command: "forebay migrate", table: "fence", migrations }
    }

    /// A cluster's catalog.
    pub(crate) const fn catalog(migrations: &'static [(u32, &'static str)]) -> Self {
        Self { what: "catalog", command: "forebay migrate --catalog", table: "node", migrations }
    }

    /// The version that this program supports.
    fn known(&self) -> u32 {
        self.migrations.iter().map(|(version, _)| *version).max().unwrap_or(0)
    }

    /// Explains that the schema, or its database, does not exist.
    pub(crate) fn missing(&self, error: &StoreError) -> StoreError {
        let message = format!("the schema is missing: run `{}` ({})", self.command, error.message);
        StoreError::new(ErrorClass::Schema, message)
    }
}

/// Which one of its kind a schema is.
#[async_trait]
pub(crate) trait Identity: Send + Sync {
    /// Writes it, if the schema says nothing yet. Fails if the schema is another one. May run again.
    async fn write(&self, session: &mut dyn Session) -> Result<(), StoreError>;
}

/// Reads the version. NULL before the first migration.
pub(crate) fn read() -> Statement {
    Statement::new("SELECT MAX(version) FROM schema_version", vec![])
}

/// Records a version that was applied.
pub(crate) fn applied(version: u32, micros: i64) -> Statement {
    Statement::new(
        "INSERT INTO schema_version (version, applied_at) VALUES (?, ?)",
        vec![version.into(), micros.into()],
    )
}

/// Fails unless the schema has the version that this program supports.
pub(crate) async fn check(session: &mut dyn Session, schema: &Schema) -> Result<(), StoreError> {
    let (known, command) = (schema.known(), schema.command);
    let found = match session.fetch(read()).await {
        Ok(rows) => int_of(&rows)?,
        Err(error) if error.class == ErrorClass::Schema => None,
        Err(error) => return Err(error),
    };
    let message = match found {
        Some(found) if found == i64::from(known) => return check_kind(session, schema).await,
        Some(found) if found > i64::from(known) => {
            format!("the schema has version {found}; this program supports versions up to {known}")
        }
        Some(found) => {
            format!("the schema has version {found}; this program needs {known}: run `{command}`")
        }
        None => format!("the schema is missing: run `{command}`"),
    };
    Err(StoreError::new(ErrorClass::Schema, message))
}

/// The migrations that are not applied yet. Fails if the schema is of another kind: theirs have the same
/// numbers.
pub(crate) async fn missing(
    session: &mut dyn Session,
    schema: &Schema,
) -> Result<Vec<(u32, &'static str)>, MigrateError> {
    let known = schema.known();
    let found = match int_of(&session.fetch(read()).await?)? {
        Some(found) => {
            check_kind(session, schema).await?;
            u32::try_from(found).unwrap_or(u32::MAX)
        }
        None => 0,
    };
    if found > known {
        return Err(MigrateError::TooNew { found, known });
    }
    Ok(schema.migrations.iter().filter(|(version, _)| *version > found).copied().collect())
}

/// Fails if a schema that has been migrated lacks the table that its kind always has.
async fn check_kind(session: &mut dyn Session, schema: &Schema) -> Result<(), StoreError> {
    let sql = format!("SELECT 1 FROM {} LIMIT 1", schema.table);
    match session.fetch(Statement::new(sql, vec![])).await {
        Err(error) if error.class == ErrorClass::Schema => {
            let message = format!("the schema is not a {}: are two URLs swapped?", schema.what);
            Err(StoreError::new(ErrorClass::Schema, message))
        }
        found => found.map(drop),
    }
}
