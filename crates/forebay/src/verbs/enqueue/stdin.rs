//! Reads stdin or a file.

use std::{
    io::{self, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// Somebody at a terminal is told what the program waits for.
pub fn say_what_it_is_for(what: &str) {
    if io::stdin().is_terminal() {
        eprintln!("reading {what} from the terminal; end with Ctrl-D, give up with Ctrl-C");
    }
}

/// All of a file, or of stdin.
pub fn read(file: Option<&PathBuf>) -> Result<Vec<u8>, Failure> {
    if let Some(path) = file {
        return std::fs::read(path).map_err(|error| unreadable(path, &error));
    }
    say_what_it_is_for("the payload");
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Why a file can't be read.
pub fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot read {}: {error}", path.display()))
}
