//! How the program says that it failed: on stderr, with status 1.

use std::{fmt::Display, process::ExitCode};

use forebay_client::Error;
use forebay_node::config::ConfigError;

/// Why a verb failed, in lines for people.
#[derive(Debug)]
pub struct Failure(Vec<String>);

impl Failure {
    /// One clear line.
    pub fn new(line: impl Into<String>) -> Self {
        Self(vec![line.into()])
    }

    /// Everything that is wrong, one line each.
    pub fn from_all(wrong: impl IntoIterator<Item = impl Display>) -> Self {
        Self(wrong.into_iter().map(|line| line.to_string()).collect())
    }

    /// As it describes itself.
    pub fn from_display(error: impl Display) -> Self {
        Self(error.to_string().lines().map(str::to_owned).collect())
    }

    /// Tells it, and gives the exit status.
    pub fn tell(self) -> ExitCode {
        for line in self.0 {
            eprintln!("forebay: {line}");
        }
        ExitCode::FAILURE
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        // With its causes, on one line.
        Self::new(format!("{error:#}").replace('\n', "; "))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.to_string().replace('\n', "; "))
    }
}

/// Everything that is wrong, one line each.
impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self(error.0)
    }
}
