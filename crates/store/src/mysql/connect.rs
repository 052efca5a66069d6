//! How a connection is opened, and the settings that each kind of connection works under.

use std::time::Duration;

use sqlx::{
    ConnectOptions as _, Executor as _,
    mysql::{MySqlConnectOptions, MySqlConnection},
};

use super::{error::classify, session::MySqlSession};
use crate::{ErrorClass, StoreError};

/// A server that lives answers sooner.
const CONNECT: Duration = Duration::from_secs(5);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Writes batches. Every transaction is ended by hand.
    Writer,
    /// Renews, observes, migrates: each statement by itself.
    Single,
    /// Makes and drops tables, and gives way to whoever uses them.
    Ddl,
}

/// Opens a connection that writes or asks in one of the roles.
pub(super) async fn connect(options: &MySqlConnectOptions, role: Role) -> Result<MySqlSession, StoreError> {
    let connecting = async {
        let mut connection = options.connect().await.map_err(classify)?;
        prepare(&mut connection, role).await.map_err(classify)?;
        Ok(MySqlSession::new(connection))
    };
    let timed_out = |_| StoreError::new(ErrorClass::Disconnected, "connecting takes too long");
    tokio::time::timeout(CONNECT, connecting).await.map_err(timed_out)?
}

/// Sets what the session works under. Time-outs are short: a stopped owner keeps its locks no longer.
async fn prepare(connection: &mut MySqlConnection, role: Role) -> Result<(), sqlx::Error> {
    let sql = match role {
        // In MariaDB an owner that stops inside a transaction is cut off sooner still.
        Role::Writer => {
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 0, \
             innodb_lock_wait_timeout = 3, lock_wait_timeout = 3, wait_timeout = 15 \
             /*M!100300 , idle_transaction_timeout = 5 */; \
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        }
        Role::Single => {
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
             innodb_lock_wait_timeout = 3, lock_wait_timeout = 3, wait_timeout = 15; \
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        }
        Role::Ddl => {
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
             innodb_lock_wait_timeout = 1, lock_wait_timeout = 1, wait_timeout = 15"
        }
    };
    connection.execute(sqlx::raw_sql(sql)).await?;
    if role == Role::Writer && !minimize_binlog(connection).await? {
        tracing::debug!("binlog_row_image can't be set for the session");
    }
    Ok(())
}

/// With the whole rows in the binary log a delete writes every payload once more, and MariaDB writes the text of
/// every statement, payloads included, beside the rows that it changed. Not every account may change that; `false`:
/// this one may not keep whole rows out.
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

/// Sets up a connection of the reader's pool.
pub(super) async fn prepare_reader(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    let sql = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
               innodb_lock_wait_timeout = 3, lock_wait_timeout = 3; \
               SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
    connection.execute(sqlx::raw_sql(sql)).await.map(drop)
}
