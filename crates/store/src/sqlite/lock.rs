//! The lock beside the file: whoever holds it is alive.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{ErrorClass, StoreError};

/// Held as long as the owner lives. The operating system gives it back when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct OwnerLock {
    _file: File,
}

/// A bystander holds the lock for a moment when it looks whether it is free.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

impl OwnerLock {
    /// `None`: another owner lives.
    pub(super) async fn acquire(database: &Path) -> Result<Option<Self>, StoreError> {
        let file = open(database)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _file: file })),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(failed(database, &error)),
            }
        }
        Ok(None)
    }

    /// Whether nobody owns the shard. Several may look at once.
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
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    file.map_err(|error| failed(database, &error))
}

fn path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

fn failed(database: &Path, error: &std::io::Error) -> StoreError {
    let message = format!("the lock file {}: {error}", path(database).display());
    StoreError::new(ErrorClass::Other, message)
}
