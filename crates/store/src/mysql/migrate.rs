//! Creates or upgrades the schema, under a named lock.

use async_trait::async_trait;

use super::{
    connect::{Role, connect},
    session::MySqlSession,
    settings,
};
use crate::{
    error::{ErrorClass, MigrateError, StoreError},
    mysql_address::Target,
    sql::{
        Session as _, Statement, int_of,
        version::{self, Identity, Migration, MigrationSession, Schema},
    },
};

/// A shard.
pub(super) const SHARD: Schema = Schema::shard(&[
    Migration {
        version: 1,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/mysql/0001_first.sql"),
    },
    Migration {
        version: 2,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/mysql/0002_looks.sql"),
    },
    Migration {
        version: 3,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/mysql/0003_operations.sql"),
    },
    Migration {
        version: 4,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/mysql/0004_failures.sql"),
    },
    Migration {
        version: 5,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/mysql/0005_tallies.sql"),
    },
    Migration {
        version: 6,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/mysql/0006_namespace_tally.sql"),
    },
]);

/// How long to wait for another migration of the same schema, in seconds.
const WAIT_SECONDS: i64 = 60;
/// How often a migration goes on after its connection was lost. Each statement may be repeated.
const CUTS_MAX: u32 = 3;

/// A catalog.
pub(super) const CATALOG: Schema = Schema::catalog(&[
    Migration {
        version: 1,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0001_first.sql"),
    },
    Migration {
        version: 2,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0002_policies.sql"),
    },
    Migration {
        version: 3,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0003_settings.sql"),
    },
    Migration {
        version: 4,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0004_audit.sql"),
    },
    Migration {
        version: 5,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0005_sessions.sql"),
    },
    Migration {
        version: 6,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0006_trace.sql"),
    },
    Migration {
        version: 7,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0007_requests.sql"),
    },
    Migration {
        version: 8,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0008_token_roots.sql"),
    },
    Migration {
        version: 9,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0009_starts.sql"),
    },
    Migration {
        version: 10,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0010_denials.sql"),
    },
    Migration {
        version: 11,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0011_policy_roots.sql"),
    },
    Migration {
        version: 12,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0012_rotations.sql"),
    },
    Migration {
        version: 13,
        oldest_program: 1,
        sql: include_str!("../../../../migrations/catalog/mysql/0013_weights.sql"),
    },
]);

/// Creates or upgrades the schema. Returns the versions that were applied. Fails if it is not the one that
/// `identity` says.
pub(super) async fn migrate(
    target: &Target,
    schema: &Schema,
    identity: &dyn Identity,
) -> Result<Vec<u32>, MigrateError> {
    let mut cuts = 0;
    loop {
        match attempt(target, schema, identity).await {
            Err(MigrateError::Store(error)) if error.class == ErrorClass::Disconnected && cuts < CUTS_MAX => {
                cuts += 1;
                tracing::warn!(%error, "the migration lost its connection; it goes on");
            }
            done => return done,
        }
    }
}

async fn attempt(
    target: &Target,
    schema: &Schema,
    identity: &dyn Identity,
) -> Result<Vec<u32>, MigrateError> {
    let mut session = match connect(target, Role::Migration).await {
        Err(error) if error.class == ErrorClass::Schema => {
            create_schema(target).await?;
            connect(target, Role::Migration).await?
        }
        session => session?,
    };
    settings::check_version(&mut session).await?;
    let name = "SELECT GET_LOCK(CONCAT('forebay.migrate.', LEFT(SHA2(DATABASE(), 256), 32)), ?)";
    let rows = session.fetch(Statement::new(name, vec![WAIT_SECONDS.into()])).await?;
    if int_of(&rows)? == Some(1) {
        // The lock ends with the connection.
        let applied = apply(&mut session, schema).await?;
        identity.write(&mut session).await?;
        read_back(target, schema, &applied).await?;
        return Ok(applied);
    }
    let message = "another migration of this schema has held its lock for a minute: try again later";
    Err(StoreError::new(ErrorClass::Unavailable, message).into())
}

/// Fails unless another connection sees what was applied: nobody is told of what is not committed.
async fn read_back(target: &Target, schema: &Schema, applied: &[u32]) -> Result<(), StoreError> {
    let mut other = connect(target, Role::Migration).await?;
    let seen = version::check(&mut other, schema).await;
    other.close().await;
    seen.map_err(|error| {
        let message =
            format!("migrations {applied:?} were applied, and the server does not have them: {error}");
        StoreError::new(error.class, message)
    })
}

async fn apply(session: &mut MySqlSession, schema: &Schema) -> Result<Vec<u32>, MigrateError> {
    for table in [
        "CREATE TABLE IF NOT EXISTS schema_version (\
         version INT UNSIGNED NOT NULL COMMENT 'number of the migration', \
         applied_at BIGINT NOT NULL COMMENT 'when it was applied, in microseconds since the Unix epoch', \
         PRIMARY KEY (version)) ENGINE=InnoDB COMMENT='applied migrations'",
        "CREATE TABLE IF NOT EXISTS schema_program (\
         id TINYINT NOT NULL COMMENT 'always 1', \
         oldest INT UNSIGNED NOT NULL COMMENT 'newest schema version that a program must know', \
         PRIMARY KEY (id)) ENGINE=InnoDB COMMENT='one row, written by migrations: who may use the schema'",
    ] {
        session.run(table).await?;
    }
    let clock = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
    let now = int_of(&session.fetch(Statement::new(clock, vec![])).await?)?.unwrap_or(0);
    version::apply(session, schema, now).await
}

#[async_trait]
impl MigrationSession for MySqlSession {
    async fn run_all(&mut self, sql: &'static str) -> Result<(), StoreError> {
        for statement in sql.split_inclusive(";\n").filter(|text| has_statement(text)) {
            self.run_once(statement).await?;
        }
        Ok(())
    }
}

/// Whether there is more than comments in a part of a file.
fn has_statement(text: &str) -> bool {
    text.lines().any(|line| !line.trim().is_empty() && !line.starts_with("--"))
}

/// Creates the schema itself. The account may lack the privilege.
async fn create_schema(target: &Target) -> Result<(), StoreError> {
    let mut session = connect(&target.without_schema(), Role::Migration).await?;
    // The name contains no backtick, see options.rs.
    session.run(format!("CREATE DATABASE IF NOT EXISTS `{}`", target.schema())).await
}
