//! Creates or upgrades the schema, in one exclusive transaction.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::time::Instant;

use super::{error::classify, files, open, session::SqliteSession};
use crate::{
    error::{ErrorClass, MigrateError, StoreError},
    sql::{
        Session as _, Statement, int_of,
        version::{self, Identity, Migration, MigrationSession, Schema},
    },
};

/// The pause before a new database is opened again.
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// A shard.
pub(super) const SHARD: Schema = Schema::shard(&[
    Migration {
        version: 1,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/sqlite/0001_first.sql"),
    },
    Migration {
        version: 2,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/sqlite/0002_looks.sql"),
    },
    Migration {
        version: 3,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/sqlite/0003_operations.sql"),
    },
    Migration {
        version: 4,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/sqlite/0004_failures.sql"),
    },
    Migration {
        version: 5,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/sqlite/0005_tallies.sql"),
    },
    Migration {
        version: 6,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/sqlite/0006_namespace_tally.sql"),
    },
]);

/// A catalog.
pub(super) const CATALOG: Schema = Schema::catalog(&[
    Migration {
        version: 1,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0001_first.sql"),
    },
    Migration {
        version: 2,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0002_policies.sql"),
    },
    Migration {
        version: 3,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0003_settings.sql"),
    },
    Migration {
        version: 4,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0004_audit.sql"),
    },
    Migration {
        version: 5,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0005_sessions.sql"),
    },
    Migration {
        version: 6,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0006_trace.sql"),
    },
    Migration {
        version: 7,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0007_requests.sql"),
    },
    Migration {
        version: 8,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0008_token_roots.sql"),
    },
    Migration {
        version: 9,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0009_starts.sql"),
    },
    Migration {
        version: 10,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0010_denials.sql"),
    },
    Migration {
        version: 11,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0011_policy_roots.sql"),
    },
    Migration {
        version: 12,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0012_rotations.sql"),
    },
    Migration {
        version: 13,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/sqlite/0013_weights.sql"),
    },
]);

/// Creates or upgrades the schema. Returns the versions that were applied. Fails if it is not the one that
/// `identity` says.
pub(super) async fn migrate(
    path: &Path,
    schema: &Schema,
    identity: &dyn Identity,
) -> Result<Vec<u32>, MigrateError> {
    files::prepare(path).map_err(|error| {
        let message = format!("cannot create the file {}: {error}", path.display());
        StoreError::new(ErrorClass::Disconnected, message)
    })?;
    let mut session = SqliteSession(connect(path).await?);
    let applied = apply(&mut session, schema, identity).await;
    // Closing rolls back what is not committed.
    session.0.close().await.map_err(classify)?;
    applied
}

/// Opens the database, which may be new. The first connection sets its journal mode. Another one that does so
/// at the same moment is refused at once, whatever its time to wait for locks, so it tries again.
async fn connect(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = open::options(path).create_if_missing(true);
    let until = Instant::now() + open::BUSY_TIMEOUT;
    loop {
        match options.connect().await.map_err(classify) {
            Err(error) if error.class == ErrorClass::Replay && Instant::now() < until => {
                tokio::time::sleep(RETRY_EVERY).await;
            }
            connected => return connected,
        }
    }
}

async fn apply(
    session: &mut SqliteSession,
    schema: &Schema,
    identity: &dyn Identity,
) -> Result<Vec<u32>, MigrateError> {
    session.execute(Statement::new("BEGIN EXCLUSIVE", vec![])).await?;
    for table in [
        "CREATE TABLE IF NOT EXISTS schema_version \
         (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)",
        "CREATE TABLE IF NOT EXISTS schema_program (id INTEGER PRIMARY KEY, oldest INTEGER NOT NULL)",
    ] {
        session.execute(Statement::new(table, vec![])).await?;
    }
    let clock = "SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000";
    let now = int_of(&session.fetch(Statement::new(clock, vec![])).await?)?.unwrap_or(0);
    let applied = version::apply(session, schema, now).await?;
    identity.write(session).await?;
    session.commit().await?;
    Ok(applied)
}

#[async_trait]
impl MigrationSession for SqliteSession {
    async fn run_all(&mut self, sql: &'static str) -> Result<(), StoreError> {
        sqlx::raw_sql(sql).execute(&mut self.0).await.map_err(classify)?;
        Ok(())
    }
}
