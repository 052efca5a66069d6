//! Finding of a rule.

use std::fmt;

/// One place of the tree that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, as seen from the tree's root; or the commit.
    pub path: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The rule's name.
    pub rule: &'static str,
    /// The mistake.
    pub wrong: String,
    /// The remedy.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}; {}", self.wrong, self.remedy)
    }
}
