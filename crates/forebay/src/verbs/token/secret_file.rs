//! The file that a new token is written to, which nobody else can read.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// A file that takes its place once the token is in it. It is made first: a token that can't be written down
/// is not made.
pub struct SecretFile {
    /// Where it will be.
    path: PathBuf,
    /// Where it is so far.
    beside: PathBuf,
    /// The open file.
    file: File,
}

impl SecretFile {
    /// Makes the file beside its place.
    pub fn begin(path: &Path) -> Result<Self, Failure> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let beside = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside) {
            Ok(file) => Ok(Self { path: path.to_owned(), beside, file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let what = "of a command that was interrupted: remove it first";
                Err(Failure::usage(format!("--out: {} is there, perhaps {what}", beside.display())))
            }
            Err(error) => Err(Failure::usage(format!("--out: cannot write {}: {error}", beside.display()))),
        }
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the token, and puts the file into its place.
    pub fn finish(mut self, secret: &str) -> Result<(), Failure> {
        let mut write = || {
            writeln!(self.file, "{secret}")?;
            self.file.sync_all()?;
            fs::rename(&self.beside, &self.path)
        };
        let cannot = |error| Failure::new(format!("cannot write {}: {error}", self.path.display()));
        write().map_err(cannot)
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        // Once it is in its place there is none here.
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nobody_else_can_read_it_whatever_was_there_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        drop(SecretFile::begin(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "before", "no token was made");
        let first = SecretFile::begin(&path).unwrap();
        assert!(SecretFile::begin(&path).is_err(), "two commands do not share it");
        first.finish("fby1_x").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "fby1_x\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert!(SecretFile::begin(&folder.path().join("no/folder")).is_err());
    }
}
