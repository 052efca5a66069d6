//! How bad something is: what `forebay status` and `forebay check` say, and their exit statuses.

use crate::{failure::Failure, output::Tone};

/// How bad something is. What is not known may be bad, but what is known to be critical is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is wrong.
    Fine,
    /// It may need somebody.
    Warning,
    /// It could not be found out.
    Unknown,
    /// It needs somebody now.
    Critical,
}

impl Severity {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "warning",
            Self::Unknown => "unknown",
            Self::Critical => "critical",
        }
    }

    /// The exit status, as monitoring plug-ins have them.
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    /// Its colour.
    pub const fn tone(self) -> Tone {
        match self {
            Self::Fine => Tone::Good,
            Self::Warning | Self::Unknown => Tone::Warn,
            Self::Critical => Tone::Bad,
        }
    }

    /// Ends the verb with its exit status. All that is to be said was printed.
    pub fn end(self) -> Result<(), Failure> {
        match self {
            Self::Fine => Ok(()),
            _ => Err(Failure::only_status(self.code())),
        }
    }
}
