//! What is said of the contests of a run.

mod escape;
pub mod html;
pub mod json;
mod palette;
mod plot;
pub mod statistics;
pub mod table;
mod words;

use serde::Serialize;

use crate::{contest::Result, machine::Machine, targets::Verdict};

/// Everything that came of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Where it was made.
    pub machine: Machine,
    /// What is said of the targets, if they were what the run was for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// A contest each.
    pub results: Vec<Result>,
}
