//! Changes the file of tokens: a new file is written beside it and takes its place, so that a node never
//! reads half of one. The new file is the lock too: there is one at a time.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
};

use forebay_access::TokenId;

use crate::failure::{Failure, Status};

/// Nobody else reads a file that is made. One that is there keeps its mode, its owner and its group.
const MODE: u32 = 0o600;

/// That a token is not in the file.
pub fn no_token(id: &TokenId, path: &Path) -> Failure {
    Failure::new(format!("there is no token {id} in {}", path.display())).with(Status::NotThere)
}

/// The text of a file. One that is missing is empty.
fn read(path: &Path) -> Result<String, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Puts another text in the place of a file's.
pub fn change(path: &Path, edit: impl FnOnce(&str) -> Result<String, Failure>) -> Result<(), Failure> {
    // A link stays one. A file that is not there yet has no other name.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    let cannot = |error: io::Error| Failure::new(format!("cannot write {}: {error}", beside.display()));
    let file = match OpenOptions::new().write(true).create_new(true).mode(MODE).open(&beside) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let what = "somebody else changes the file of tokens, or was interrupted";
            return Err(Failure::new(format!("{} is there: {what}; then remove it", beside.display())));
        }
        Err(error) => return Err(cannot(error)),
    };
    let written = read(path).and_then(|text| edit(&text)).and_then(|text| {
        write(file, path, &text).map_err(cannot)?;
        fs::rename(&beside, path).map_err(cannot)
    });
    if written.is_err() {
        // If it stays, the next change says so.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write(mut file: File, path: &Path, text: &str) -> io::Result<()> {
    if let Ok(before) = fs::metadata(path) {
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (before.uid(), before.gid()) {
            fchown(&file, Some(before.uid()), Some(before.gid()))?;
        }
        file.set_permissions(Permissions::from_mode(before.mode() & 0o777))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        change(&path, |text| Ok(format!("{text}1"))).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        change(&path, |text| Ok(format!("{text}2"))).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), mode(&path)), ("12".to_owned(), 0o640));
        assert!(change(&path, |_| Err(Failure::new("no"))).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn two_do_not_change_it_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let inner = |text: &str| {
            let refused = change(&path, |_| Ok("other".to_owned())).unwrap_err();
            assert!(format!("{refused:?}").contains("somebody else changes the file"), "{refused:?}");
            Ok(format!("{text}mine"))
        };
        change(&path, inner).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
