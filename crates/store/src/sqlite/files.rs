//! The files of a database and its folder: nobody else reads what is queued, or holds the lock.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

/// Ends of the names of a database, and of the files that SQLite and this crate make beside it. SQLite gives
/// its own files the mode of the database.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", ".lock"];
/// The rights of accounts that are neither the owner's nor of its group.
const OTHERS: u32 = 0o007;

/// Makes a database that is missing, as an empty file, and its folder. A file of an earlier release loses the
/// rights of all others; those of its group may be wanted.
pub(super) fn prepare(database: &Path) -> io::Result<()> {
    if let Some(folder) = database.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(database) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for suffix in BESIDE {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        let path = Path::new(&name);
        let Ok(found) = path.metadata() else { continue };
        let mode = found.permissions().mode() & 0o777;
        if mode & OTHERS != 0 {
            let narrowed = std::fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS));
            if let Err(error) = narrowed {
                tracing::warn!("every account can read {} (mode {mode:04o}): {error}", path.display());
            }
        }
    }
    Ok(())
}

/// Opens a lock file, which is made if it is missing.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}
