//! `forebay error`

use std::io::{self, Write as _};

use clap::Args;

use crate::{
    failure::{Failure, Status},
    output::{Column, Format, List, Output, Row},
    reasons::{REASONS, ReasonInfo},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay error LEASE_LOST
  forebay error
  forebay error -o json OVERLOADED")]
pub struct ExplainError {
    /// How it is printed.
    #[command(flatten)]
    format: Format,
    /// A reason, as errors begin with it [default: all]
    reason: Option<String>,
}

impl ExplainError {
    /// Says what a reason means, whether the call took effect, and what to do.
    pub fn run(self) -> Result<(), Failure> {
        let Some(reason) = &self.reason else { return self.print(REASONS) };
        let name = reason.to_uppercase().replace('-', "_");
        let Some(info) = REASONS.iter().find(|info| info.reason.as_str() == name) else {
            let failure = Failure::new(format!("there is no reason {reason}; `forebay error` lists all"));
            return Err(failure.with(Status::NotThere));
        };
        match self.format.output {
            Output::Table | Output::Wide => {
                let ReasonInfo { reason, code, meaning, happened, advice } = info;
                let mut out = io::stdout().lock();
                writeln!(out, "{} ({code}): {meaning}", reason.as_str())?;
                writeln!(out, "Did the call take effect? {happened}")?;
                Ok(writeln!(out, "What to do: {advice}")?)
            }
            _ => self.print(std::slice::from_ref(info)),
        }
    }

    fn print(&self, reasons: &[ReasonInfo]) -> Result<(), Failure> {
        let list = List { field: "reasons", rows: reasons, rest: Vec::new() };
        list.print(self.format.output, &self.format.look)
    }
}

impl Row for ReasonInfo {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("REASON", |info, _| info.reason.as_str().into()),
        Column::new("HAPPENED", |info, _| info.happened.into()),
        Column::new("MEANING", |info, _| info.meaning.into()),
        Column::wide("CODE", |info, _| info.code.into()),
        Column::wide("WHAT TO DO", |info, _| info.advice.into()),
    ];

    fn name(&self) -> String {
        self.reason.as_str().to_owned()
    }

    fn json(&self) -> anyhow::Result<serde_json::Value> {
        Ok(serde_json::json!({
            "reason": self.reason.as_str(),
            "code": self.code,
            "meaning": self.meaning,
            "happened": self.happened,
            "advice": self.advice,
        }))
    }
}
