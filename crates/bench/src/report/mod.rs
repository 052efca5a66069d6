//! Reports of a run.

mod escape;
mod format;
pub mod html;
pub mod json;
mod palette;
mod plot;
pub mod table;

use serde::Serialize;

use crate::{comparison::ComparisonResult, machine::Machine, target::Verdict};

/// All results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The machine of the run.
    pub machine: Machine,
    /// Verdicts on the targets; empty unless the targets were run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// One result per comparison.
    pub results: Vec<ComparisonResult>,
}
