//! The report as JSON, for programs.

use anyhow::Context as _;

use super::Report;

/// Writes the report.
pub fn write(report: &Report) -> anyhow::Result<String> {
    serde_json::to_string_pretty(report).context("cannot write JSON")
}
