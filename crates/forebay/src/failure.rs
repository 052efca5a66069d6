//! How the program reports that it failed: on stderr, with exit status 1.

use std::{fmt::Display, process::ExitCode};

use forebay_client::Error;
use forebay_node::config::ConfigError;

/// Why a verb failed, one message a line.
#[derive(Debug)]
pub struct Failure(Vec<String>);

impl Failure {
    /// One message.
    pub fn new(line: impl Into<String>) -> Self {
        Self(vec![line.into()])
    }

    /// Several messages, one line each.
    pub fn from_all(wrong: impl IntoIterator<Item = impl Display>) -> Self {
        Self(wrong.into_iter().map(|line| line.to_string()).collect())
    }

    /// An error's own text, which may have several lines.
    pub fn from_display(error: impl Display) -> Self {
        Self(error.to_string().lines().map(str::to_owned).collect())
    }

    /// Prints the messages to stderr and returns the exit status.
    pub fn print(self) -> ExitCode {
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

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self(error.0)
    }
}
