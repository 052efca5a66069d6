//! The schema's version.

use super::statement::{Session, Statement, int_of};
use crate::error::{ErrorClass, MigrateError, StoreError};

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
pub(crate) async fn check(session: &mut dyn Session, known: u32) -> Result<(), StoreError> {
    let found = match session.fetch(read()).await {
        Ok(rows) => int_of(&rows)?,
        Err(error) if error.class == ErrorClass::Schema => None,
        Err(error) => return Err(error),
    };
    let message = match found {
        Some(found) if found == i64::from(known) => return Ok(()),
        Some(found) if found > i64::from(known) => {
            format!("the schema has version {found}; this program supports versions up to {known}")
        }
        Some(found) => {
            format!("the schema has version {found}; this program needs {known}: run `forebay migrate`")
        }
        None => "the schema is missing: run `forebay migrate`".to_owned(),
    };
    Err(StoreError::new(ErrorClass::Schema, message))
}

/// The migrations that are not applied yet, given the version found.
pub(crate) fn missing(
    found: Option<i64>,
    migrations: &[(u32, &'static str)],
) -> Result<Vec<(u32, &'static str)>, MigrateError> {
    let known = migrations.iter().map(|(version, _)| *version).max().unwrap_or(0);
    let found = u32::try_from(found.unwrap_or(0)).unwrap_or(u32::MAX);
    if found > known {
        return Err(MigrateError::TooNew { found, known });
    }
    Ok(migrations.iter().filter(|(version, _)| *version > found).copied().collect())
}
