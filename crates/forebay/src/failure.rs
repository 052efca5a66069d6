//! How the program reports that it failed: on stderr, with an exit status that says in which way.

use std::{
    fmt::Display,
    io::{self, Write as _},
    process::ExitCode,
};

use forebay_client::{Code, Error};
use forebay_config::ConfigError;
use forebay_types::visible;

/// In which way a verb failed, as exit status. 0 is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was refused or failed.
    Failed = 1,
    /// It was used wrongly. The parser of the arguments exits with this status too.
    Usage = 2,
    /// The named thing is not there, or no item came in the time that the program was told to wait.
    NotThere = 3,
    /// The caller is not signed in, or may not do this.
    NotAllowed = 4,
    /// Some of it was done.
    Partly = 5,
    /// The server is out of reach or refuses for now: worth repeating.
    Unavailable = 6,
    /// Interrupted, as a shell shows an end by SIGINT.
    Interrupted = 130,
    /// Whoever reads the output has ended, as a shell shows an end by SIGPIPE.
    BrokenPipe = 141,
}

/// Why a verb failed, one message a line.
#[derive(Debug)]
pub struct Failure {
    /// For stderr.
    lines: Vec<String>,
    /// For the process that started this one.
    status: u8,
}

impl Failure {
    /// One message.
    pub fn new(line: impl Into<String>) -> Self {
        Self { lines: vec![line.into()], status: Status::Failed as u8 }
    }

    /// An exit status alone: all that is to be said was printed.
    pub fn only_status(status: u8) -> Self {
        Self { lines: Vec::new(), status }
    }

    /// An argument that is wrong.
    pub fn usage(line: impl Into<String>) -> Self {
        Self::new(line).with(Status::Usage)
    }

    /// Several messages, one line each.
    pub fn from_all(wrong: impl IntoIterator<Item = impl Display>) -> Self {
        let lines = wrong.into_iter().map(|line| line.to_string()).collect();
        Self { lines, status: Status::Failed as u8 }
    }

    /// An error's own text, which may have several lines.
    pub fn from_display(error: impl Display) -> Self {
        Self::from_all(error.to_string().lines())
    }

    /// The same with another exit status.
    pub fn with(self, status: Status) -> Self {
        Self { status: status as u8, ..self }
    }

    /// The same with an exit status that means something else at this verb.
    pub fn with_code(self, status: u8) -> Self {
        Self { status, ..self }
    }

    /// Whether the server is out of reach or refuses for now.
    pub fn is_unavailable(&self) -> bool {
        self.status == Status::Unavailable as u8
    }

    /// The messages in one line.
    pub fn text(&self) -> String {
        self.lines.join("; ")
    }

    /// The same with more before its first line.
    pub fn begin(mut self, text: &str) -> Self {
        if let Some(line) = self.lines.first_mut() {
            line.insert_str(0, text);
        }
        self
    }

    /// The same with the lines of another one after it.
    pub fn and(mut self, other: Self) -> Self {
        self.lines.extend(other.lines);
        self
    }

    /// The same with more in its last line.
    pub fn hint(mut self, hint: &str) -> Self {
        if let Some(line) = self.lines.last_mut() {
            line.push_str(hint);
        }
        self
    }

    /// Prints the messages to stderr and returns the exit status.
    pub fn print(self) -> ExitCode {
        for line in self.lines {
            // Servers and databases have their say in it.
            // Where nobody listens, the status tells.
            let _ = writeln!(io::stderr(), "forebay: {}", visible(&line));
        }
        ExitCode::from(self.status)
    }
}

/// Whether nobody reads the output any more. Nothing else that fails so is an error of input and output here.
fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if error.chain().any(is_broken_pipe) {
            return Self::only_status(Status::BrokenPipe as u8);
        }
        // With its causes, on one line.
        Self::new(format!("{error:#}").replace('\n', "; "))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match is_broken_pipe(&error) {
            true => Self::only_status(Status::BrokenPipe as u8),
            false => Self::new(error.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.code() {
            _ if error.is_transient() => Status::Unavailable,
            Code::NotFound => Status::NotThere,
            Code::Unauthenticated | Code::PermissionDenied => Status::NotAllowed,
            _ => Status::Failed,
        };
        let failure = Self::new(error.to_string().replace('\n', "; ")).with(status);
        // Forebay itself always gives a reason.
        match (error.code(), error.reason()) {
            (Code::Unauthenticated, _) => failure.hint("; show a token with --token-file or FOREBAY_TOKEN"),
            (Code::Unimplemented, None) => failure.hint("; is that a Forebay server?"),
            _ => failure,
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::from_all(error.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_nobody_reads_ends_it_without_a_word() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let wrapped = anyhow::Error::from(broken()).context("while it wrote");
        for failure in [Failure::from(broken()), Failure::from(wrapped)] {
            assert_eq!((failure.status, failure.lines.as_slice()), (141, &[][..]));
        }
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::NotFound)).status, 1);
    }
}
