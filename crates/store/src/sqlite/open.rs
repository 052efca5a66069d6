//! How a connection to the file is opened.

use std::{path::Path, time::Duration};

use sqlx::{
    ConnectOptions as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use super::error::classify;
use crate::{ErrorClass, StoreError};

/// Renewals and batches are short: who waits longer than this waits for something that hangs.
const BUSY: Duration = Duration::from_secs(5);
/// Pages in the log before they are copied into the database: 16 MiB, so that this happens seldom.
const CHECKPOINT_PAGES: &str = "4000";

/// A commit is on disk when it returns.
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY)
        .foreign_keys(false)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .statement_cache_capacity(100)
        .disable_statement_logging()
}

/// Opens a file that is there.
pub(super) async fn open(path: &Path) -> Result<SqliteConnection, StoreError> {
    connect(&options(path), path).await
}

/// Opens a file that is there, for what may be lost with the machine: the heartbeat.
pub(super) async fn open_for_renewals(path: &Path) -> Result<SqliteConnection, StoreError> {
    connect(&options(path).synchronous(SqliteSynchronous::Normal), path).await
}

async fn connect(options: &SqliteConnectOptions, path: &Path) -> Result<SqliteConnection, StoreError> {
    if !path.exists() {
        let message = format!("there is no file {}: run `forebay migrate`", path.display());
        return Err(StoreError::new(ErrorClass::Schema, message));
    }
    options.connect().await.map_err(classify)
}
