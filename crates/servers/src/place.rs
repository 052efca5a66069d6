//! Where and how a process of a test runs.

use std::{ffi::OsString, process::Command};

/// A place for a process: by default this machine's, as it is.
#[derive(Debug, Clone)]
pub struct Place {
    /// The words before its command, as in `env NAME=value`. They must become that command, so that signals
    /// reach it.
    pub before: Vec<String>,
    /// The address on which it listens, and at which others find it.
    pub host: String,
}

impl Default for Place {
    fn default() -> Self {
        Self { before: Vec::new(), host: "127.0.0.1".to_owned() }
    }
}

impl Place {
    /// A command that runs there.
    pub fn command(&self, program: impl Into<OsString>) -> Command {
        let mut words = self.before.iter().map(OsString::from).chain([program.into()]);
        // There is at least the program.
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    }
}
