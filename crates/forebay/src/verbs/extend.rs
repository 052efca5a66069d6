//! `forebay extend`

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{
    connection::{Connection, Format},
    settled,
};
use crate::{failure::Failure, output};

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

impl Extend {
    /// Moves the ends of the leases.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let results = client.extend_lease(self.receipts.clone(), self.lease).await?;
        let to_json = |end: &_| json!({ "lease_expires_at": output::time(*end) });
        let to_cell = |end: &_| format!("leased until {}", output::time(*end));
        settled::print_with(self.format.output, &self.receipts, results, to_json, to_cell)
    }
}
