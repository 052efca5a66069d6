//! The lock file beside the database. Whoever holds its lock is alive.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use super::files;
use crate::error::{ErrorClass, StoreError};

/// Held as long as the owner lives. The operating system releases it when the process ends in any way.
#[derive(Debug)]
pub(super) struct OwnerLock {
    /// The lock ends when the file is closed.
    _file: File,
}

/// Another process that checks the lock holds it for a moment, so it is tried several times.
const ATTEMPTS_MAX: u32 = 5;
const RETRY_EVERY: Duration = Duration::from_millis(10);

impl OwnerLock {
    /// Acquires the lock. `None` means that another owner is alive.
    pub(super) async fn acquire(database: &Path) -> Result<Option<Self>, StoreError> {
        let file = open(database)?;
        for _ in 0..ATTEMPTS_MAX {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _file: file })),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(RETRY_EVERY).await,
                Err(TryLockError::Error(error)) => return Err(failed(database, &error)),
            }
        }
        Ok(None)
    }

    /// Whether no owner is alive. Several processes may check at once.
    pub(super) fn is_free(database: &Path) -> Result<bool, StoreError> {
        match open(database)?.try_lock_shared() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(failed(database, &error)),
        }
    }
}

fn open(database: &Path) -> Result<File, StoreError> {
    let path = path(database);
    files::open_lock(&path).map_err(|error| failed(database, &error))
}

fn path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

fn failed(database: &Path, error: &std::io::Error) -> StoreError {
    let message = format!("the lock file {}: {error}", path(database).display());
    StoreError::new(ErrorClass::Disconnected, message)
}
