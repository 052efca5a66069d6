//! Opens connections to the file.

use std::{path::Path, time::Duration};

use sqlx::{
    ConnectOptions as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use super::error::classify;
use crate::error::{ErrorClass, StoreError};

/// Renewals and batches are short. A longer wait means that another transaction hangs.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How many pages the log holds before they are copied into the database: 16 MiB.
const CHECKPOINT_PAGES: &str = "4000";

/// Options under which a commit is on disk when it returns.
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(false)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .statement_cache_capacity(100)
        .disable_statement_logging()
}

/// Opens an existing file.
pub(super) async fn open(path: &Path) -> Result<SqliteConnection, StoreError> {
    connect(&options(path), path, "forebay migrate").await
}

/// Opens the existing file of a catalog.
pub(super) async fn open_catalog(path: &Path) -> Result<SqliteConnection, StoreError> {
    connect(&options(path), path, "forebay migrate --catalog").await
}

/// Opens an existing file for renewals. A power failure may lose the last of them, which is harmless.
pub(super) async fn open_for_renewals(path: &Path) -> Result<SqliteConnection, StoreError> {
    connect(&options(path).synchronous(SqliteSynchronous::Normal), path, "forebay migrate").await
}

async fn connect(
    options: &SqliteConnectOptions,
    path: &Path,
    command: &str,
) -> Result<SqliteConnection, StoreError> {
    if !path.exists() {
        let message = format!("the file {} is missing: run `{command}`", path.display());
        return Err(StoreError::new(ErrorClass::Schema, message));
    }
    options.connect().await.map_err(classify)
}
