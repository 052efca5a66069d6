//! Opens connections and sets their session variables.

use std::time::Duration;

use sqlx::{
    ConnectOptions as _, Executor as _,
    mysql::{MySqlConnectOptions, MySqlConnection},
};

use super::{error::classify, session::MySqlSession};
use crate::error::{ErrorClass, StoreError};

/// A server that is alive answers sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// No statement of this crate takes as long on a reachable server. TCP alone would wait for minutes.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The same on a connection that all shards of a server share, where all of them wait: longer than a slow
/// commit, and no longer.
const SHARED_TIMEOUT: Duration = Duration::from_secs(3);
/// A statement of a migration may rebuild a table.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// What a connection is for.
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
}

/// Opens a connection for a role.
pub(super) async fn connect(options: &MySqlConnectOptions, role: Role) -> Result<MySqlSession, StoreError> {
    let address = address(options);
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
                Role::Writer | Role::Ddl => STATEMENT_TIMEOUT,
            };
            let session = MySqlSession::new(connection, address, timeout);
            return Ok(if role == Role::Shared { session.text_only() } else { session });
        }
        Ok(Err(error)) => classify(error),
        Err(_) => StoreError::new(ErrorClass::Disconnected, "no answer within 5 s"),
    };
    Err(StoreError::new(error.class, format!("cannot connect to {address}: {}", error.message)))
}

/// The schema's address for messages, as in `db1:3306/forebay_0001`, or that of the server.
pub(super) fn address(options: &MySqlConnectOptions) -> String {
    let server = format!("{}:{}", options.get_host(), options.get_port());
    match options.get_database() {
        None | Some("") => server,
        Some(schema) => format!("{server}/{schema}"),
    }
}

/// Sets the session variables. The timeouts are short, so that an owner that hangs soon loses its locks.
async fn prepare(connection: &mut MySqlConnection, role: Role) -> Result<(), sqlx::Error> {
    let sql = match role {
        // MariaDB can also end a transaction that is idle.
        Role::Writer => {
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 0, \
             innodb_lock_wait_timeout = 3, lock_wait_timeout = 3, wait_timeout = 15 \
             /*M!100300 , idle_transaction_timeout = 5 */; \
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        }
        Role::Shared => {
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
             innodb_lock_wait_timeout = 1, lock_wait_timeout = 1, wait_timeout = 15 \
             /*M!100300 , idle_transaction_timeout = 5 */; \
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        }
        Role::Ddl => {
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
             innodb_lock_wait_timeout = 1, lock_wait_timeout = 1, wait_timeout = 15"
        }
        Role::Migration => {
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
             innodb_lock_wait_timeout = 60, lock_wait_timeout = 60, wait_timeout = 60"
        }
    };
    connection.execute(sqlx::raw_sql(sql)).await?;
    if role == Role::Writer && !minimize_binlog(connection).await? {
        tracing::debug!("this account may not set binlog_row_image; deletes write whole rows to the binlog");
    }
    Ok(())
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

/// Sets the session variables of a reader's connection.
pub(super) async fn prepare_reader(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    let sql = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
               innodb_lock_wait_timeout = 3, lock_wait_timeout = 3; \
               SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
    connection.execute(sqlx::raw_sql(sql)).await.map(drop)
}
