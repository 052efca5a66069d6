//! `forebay extend`

use std::time::Duration;

use clap::Args;
use forebay_client::{Error, Timestamp};
use serde_json::Value;

use super::{connection::Connection, settled};
use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay extend RECEIPT
  forebay extend RECEIPT --lease 10m")]
pub struct Extend {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// When the leases end, counted from now, as in 5m [default: each item's own lease]
    #[arg(long, value_parser = humantime::parse_duration)]
    lease: Option<Duration>,
    /// Receipts of the deliveries
    #[arg(required = true, value_name = "RECEIPT")]
    receipts: Vec<String>,
}

/// Result of one receipt.
struct ExtendOutcome {
    /// The receipt.
    receipt: String,
    /// When its lease ends.
    result: Result<Timestamp, Error>,
}

impl Row for ExtendOutcome {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("RECEIPT", |row, _| Cell::from(&row.receipt)),
        Column::new("LEASE ENDS", |row, style| {
            settled::outcome(&row.result, style, |end, style| style.time(*end))
        }),
    ];

    fn name(&self) -> String {
        if self.result.is_ok() { self.receipt.clone() } else { String::new() }
    }

    fn json(&self) -> anyhow::Result<Value> {
        let result = output::to_json("ExtendLeaseResult", &output::extended(&self.result))?;
        settled::with_receipt(&self.receipt, result)
    }
}

impl Extend {
    /// Moves the ends of the leases.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let results = client.extend_lease(self.receipts.clone(), self.lease).await?;
        let each = self.receipts.into_iter().zip(results.clone());
        let rows: Vec<_> = each.map(|(receipt, result)| ExtendOutcome { receipt, result }).collect();
        let list = List { field: "results", rows: &rows, rest: Vec::new() };
        list.print(self.format.output, &self.format.look)?;
        settled::first_failure(results)
    }
}
