//! Finds server programs. Nothing is installed: a queue whose program is missing is listed as absent.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Folders that are searched after the PATH: servers are often in folders that only root has on its PATH.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/// The first program with this name on the PATH or in a usual folder that `fits`, with links resolved. A link
/// to a program with another name is skipped: such a program depends on the name by which it is called.
pub fn on_path(name: &str, fits: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    let mut files = folders.filter_map(|folder| fs::canonicalize(folder.join(name)).ok());
    files.find(|file| file.file_name().is_some_and(|own| own == name) && file.is_file() && fits(file))
}

/// The program with this name in the folder `<parent>/<version>/<rest>` of the highest version. Versions are
/// compared as numbers.
pub fn versioned(parent: &str, rest: &str, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(parent).ok()?.flatten();
    let versions = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let files =
        versions.map(|version| (version, Path::new(parent).join(version.to_string()).join(rest).join(name)));
    files.filter(|(_, file)| file.is_file()).max().map(|(_, file)| file)
}
