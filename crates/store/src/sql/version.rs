//! Which version the schema has.

use super::{Session, Statement, int_of};
use crate::{ErrorClass, MigrateError, StoreError};

pub(crate) fn read() -> Statement {
    Statement::new("SELECT MAX(version) FROM schema_version", vec![])
}

pub(crate) fn applied(version: u32, micros: i64) -> Statement {
    Statement::new(
        "INSERT INTO schema_version (version, applied_at) VALUES (?, ?)",
        vec![version.into(), micros.into()],
    )
}

/// The schema must be the one that this program knows.
pub(crate) async fn check(session: &mut dyn Session, known: u32) -> Result<(), StoreError> {
    let found = match session.fetch(read()).await {
        Ok(rows) => int_of(&rows)?,
        Err(error) if error.class == ErrorClass::Schema => None,
        Err(error) => return Err(error),
    };
    let message = match found {
        Some(found) if found == i64::from(known) => return Ok(()),
        Some(found) if found > i64::from(known) => {
            format!("the schema is of version {found}, and this program knows versions up to {known}")
        }
        Some(found) => {
            format!("the schema is of version {found}, and this program needs {known}: run `forebay migrate`")
        }
        None => "there is no schema yet: run `forebay migrate`".to_owned(),
    };
    Err(StoreError::new(ErrorClass::Schema, message))
}

/// The migrations that are still to be applied, given what is there.
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
