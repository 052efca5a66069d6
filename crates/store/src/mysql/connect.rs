//! Opens connections and sets their session variables.

use std::time::Duration;

use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, mysql::MySqlConnection};

use super::{error::classify, session::MySqlSession};
use crate::{
    error::{ErrorClass, StoreError},
    mysql_address::Target,
};

/// A server that is alive answers sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// No statement of this crate takes as long on a reachable server. TCP alone would wait for minutes.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The same on a connection that all shards of a server share, where all of them wait: longer than a slow
/// commit, and no longer.
const SHARED_TIMEOUT: Duration = Duration::from_secs(3);
/// A statement of a migration may rebuild a table.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Writes batches. Autocommit is off.
    Writer,
    /// Asks about many shards, and renews their claims. Each statement is a transaction. It has no schema,
    /// and short lock waits: others wait for it.
    Shared,
    /// Creates and drops tables. Its lock waits are the shortest.
    Ddl,
    /// Creates or upgrades the schema. It waits for locks, and for statements that rebuild a table.
    Migration,
    /// Reads committed data. Each statement is a transaction.
    Reader,
}

/// Opens a connection for a role.
pub(super) async fn connect(target: &Target, role: Role) -> Result<MySqlSession, StoreError> {
    let address = target.address();
    let options = target.options();
    let connecting = async {
        let mut connection = options.connect().await?;
        prepare(&mut connection, role).await?;
        Ok(connection)
    };
    let error = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(Ok(connection)) => {
            let timeout = match role {
                Role::Migration => MIGRATION_TIMEOUT,
                Role::Shared => SHARED_TIMEOUT,
                Role::Writer | Role::Ddl | Role::Reader => STATEMENT_TIMEOUT,
            };
            let session = MySqlSession::new(connection, address, timeout);
            return Ok(if role == Role::Shared { session.text_only() } else { session });
        }
        Ok(Err(error)) => classify(error),
        Err(_) => StoreError::new(ErrorClass::Disconnected, "no answer within 5 s"),
    };
    Err(StoreError::new(error.class, format!("cannot connect to {address}: {}", error.message)))
}

/// Sets all that this program relies on in a session: a server's defaults are its administrator's.
pub(super) async fn prepare(connection: &mut MySqlConnection, role: Role) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(session_settings(role)))).await?;
    if role == Role::Writer && !minimize_binlog(connection).await? {
        tracing::debug!("this account may not set binlog_row_image; deletes write whole rows to the binlog");
    }
    Ok(())
}

/// The statements that set a session up. The timeouts are short, so that an owner that hangs soon loses its
/// locks.
fn session_settings(role: Role) -> String {
    let autocommit = u8::from(role != Role::Writer);
    let (lock_seconds, idle_seconds) = match role {
        Role::Writer => (3, Some(15)),
        Role::Reader => (3, None),
        Role::Shared | Role::Ddl => (1, Some(15)),
        Role::Migration => (60, Some(60)),
    };
    let idle = idle_seconds.map(|seconds| format!(", wait_timeout = {seconds}")).unwrap_or_default();
    // MariaDB can also end a transaction that is idle.
    let idle_transaction = match role {
        Role::Writer | Role::Shared => " /*M!100300 , idle_transaction_timeout = 5 */",
        Role::Reader | Role::Ddl | Role::Migration => "",
    };
    format!(
        "SET NAMES utf8mb4; \
         SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = {autocommit}, \
         completion_type = 0, time_zone = '+00:00', unique_checks = 1, sql_safe_updates = 0, \
         sql_big_selects = 1, sql_select_limit = 18446744073709551615, \
         innodb_lock_wait_timeout = {lock_seconds}, lock_wait_timeout = {lock_seconds}{idle} \
         /*M!100100 , max_statement_time = 0 */ /*!80000 , max_execution_time = 0 */{idle_transaction}; \
         SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE"
    )
}

/// Keeps payloads out of the binary log where possible. With full row images a delete writes every payload
/// again. MariaDB also writes the text of every statement, payloads included. Returns `false` if this account
/// may not change the row image.
pub(super) async fn minimize_binlog(connection: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
    let rows_and_text =
        "SET SESSION binlog_row_image = MINIMAL /*M!100204 , binlog_annotate_row_events = OFF */";
    for sql in [rows_and_text, "SET SESSION binlog_row_image = MINIMAL"] {
        match connection.execute(sqlx::raw_sql(sql)).await {
            Ok(_) => return Ok(true),
            Err(sqlx::Error::Database(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
