//! Where a peer's server program is. Nothing is installed: what is not there is reported by name.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Where programs are besides the PATH: servers are often where only the administrator's PATH leads.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/// The first program of that name on the PATH or in a usual folder that `fits`, with links resolved. A link
/// to a program of another name is passed over: that one looks at the name by which it was called, and would
/// not find it.
pub fn program(name: &str, fits: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    let mut files = folders.filter_map(|folder| fs::canonicalize(folder.join(name)).ok());
    files.find(|file| file.file_name().is_some_and(|own| own == name) && file.is_file() && fits(file))
}

/// The program of that name in the folder `<parent>/<version>/<rest>` of the greatest version, where 9 is
/// less than 15.
pub fn versioned(parent: &str, rest: &str, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(parent).ok()?.flatten();
    let versions = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let files =
        versions.map(|version| (version, Path::new(parent).join(version.to_string()).join(rest).join(name)));
    files.filter(|(_, file)| file.is_file()).max().map(|(_, file)| file)
}
