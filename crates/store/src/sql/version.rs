//! A schema's migrations, and the version that they have brought it to.

use async_trait::async_trait;

use super::statement::{Session, Statement, int_of};
use crate::error::{ErrorClass, MigrateError, StoreError};

/// One step of a schema. `migrations/README.md` has its rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    /// The version to which it brings the schema.
    pub(crate) version: u32,
    /// The oldest program that may use the schema from now on, by the newest version that it knows.
    pub(crate) oldest_program: u32,
    /// Its statements.
    pub(crate) sql: &'static str,
}

/// Versions are 1, 2, 3 and so on. Each step leaves the schema to the program before it, and takes back
/// nothing that an earlier step said.
const fn assert_in_order(migrations: &[Migration]) {
    let (mut before, mut oldest) = (0, 1);
    while before < migrations.len() {
        let Migration { version, oldest_program, .. } = migrations[before];
        assert!(version as usize == before + 1, "a version is missing");
        assert!(before == 0 || (oldest_program as usize) <= before, "it excludes the release before");
        assert!(oldest_program >= oldest, "it admits a program that was excluded");
        (before, oldest) = (before + 1, oldest_program);
    }
}

/// A kind of schema on one kind of database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    /// Name of the kind, for messages.
    pub(crate) what: &'static str,
    /// The command that creates or upgrades it.
    pub(crate) command: &'static str,
    /// A table that every version of it has, and no other kind of schema.
    pub(crate) table: &'static str,
    /// Every step, in order.
    pub(crate) migrations: &'static [Migration],
}

impl Schema {
    /// A shard.
    pub(crate) const fn shard(migrations: &'static [Migration]) -> Self {
        assert_in_order(migrations);
        Self { what: "shard", command: "forebay migrate", table: "fence", migrations }
    }

    /// A cluster's catalog.
    pub(crate) const fn catalog(migrations: &'static [Migration]) -> Self {
        assert_in_order(migrations);
        Self { what: "catalog", command: "forebay migrate --catalog", table: "node", migrations }
    }

    /// The newest version that this program knows.
    fn known(&self) -> u32 {
        self.migrations.last().map_or(0, |migration| migration.version)
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

/// A connection that can migrate.
#[async_trait]
pub(crate) trait MigrationSession: Session {
    /// Runs the statements of a migration.
    async fn run_all(&mut self, sql: &'static str) -> Result<(), StoreError>;
}

/// The version of the schema. `None` before the first migration.
async fn read(session: &mut dyn Session) -> Result<Option<u32>, StoreError> {
    let statement = Statement::new("SELECT MAX(version) FROM schema_version", vec![]);
    let found = int_of(&session.fetch(statement).await?)?;
    Ok(found.map(|version| u32::try_from(version).unwrap_or(u32::MAX)))
}

/// Fails if this program may not use a schema whose version `found` is newer than what it knows. A schema
/// that names no oldest program is for those that know its version.
async fn admit(session: &mut dyn Session, schema: &Schema, found: u32) -> Result<(), MigrateError> {
    let statement = Statement::new("SELECT oldest FROM schema_program WHERE id = 1", vec![]);
    let oldest = match session.fetch(statement).await {
        Ok(rows) => int_of(&rows)?,
        Err(error) if error.class == ErrorClass::Schema => None,
        Err(error) => return Err(error.into()),
    };
    let oldest = oldest.map_or(found, |oldest| u32::try_from(oldest).unwrap_or(u32::MAX));
    let known = schema.known();
    if oldest > known { Err(MigrateError::TooNew { found, oldest, known }) } else { Ok(()) }
}

/// Fails unless the schema has all that this program needs, and this program may use it.
pub(crate) async fn check(session: &mut dyn Session, schema: &Schema) -> Result<(), StoreError> {
    let (known, command) = (schema.known(), schema.command);
    let found = match read(session).await {
        Ok(found) => found,
        Err(error) if error.class == ErrorClass::Schema => None,
        Err(error) => return Err(error),
    };
    if found.is_some() {
        check_kind(session, schema).await?;
    }
    let message = match found {
        Some(found) if found >= known => match admit(session, schema, found).await {
            Ok(()) => return Ok(()),
            Err(MigrateError::Store(error)) => return Err(error),
            Err(too_new) => too_new.to_string(),
        },
        Some(found) => {
            format!("the schema has version {found}; this program needs {known}: run `{command}`")
        }
        None => format!("the schema is missing: run `{command}`"),
    };
    Err(StoreError::new(ErrorClass::Schema, message))
}

/// Applies the migrations that are missing. Returns their versions. Fails if the schema is of another kind,
/// because theirs have the same numbers, or if it is too new. `micros` is the time.
pub(crate) async fn apply(
    session: &mut dyn MigrationSession,
    schema: &Schema,
    micros: i64,
) -> Result<Vec<u32>, MigrateError> {
    let found = read(session).await?;
    if found.is_some() {
        check_kind(session, schema).await?;
    }
    let found = found.unwrap_or(0);
    if found > schema.known() {
        admit(session, schema, found).await?;
    }
    let mut applied = Vec::new();
    for Migration { version, oldest_program, sql } in schema.migrations {
        if *version > found {
            // First, because a migration may stop half way: whom it excludes must not begin in its midst.
            let oldest = "REPLACE INTO schema_program (id, oldest) VALUES (1, ?)";
            session.execute(Statement::new(oldest, vec![(*oldest_program).into()])).await?;
            session.run_all(sql).await?;
            let done = "INSERT INTO schema_version (version, applied_at) VALUES (?, ?)";
            session.execute(Statement::new(done, vec![(*version).into(), micros.into()])).await?;
            applied.push(*version);
        }
    }
    Ok(applied)
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

#[cfg(test)]
mod tests;
