//! `forebay ack`

use clap::Args;
use forebay_client::NackOutcome;

use super::{connection::Connection, settled};
use crate::{failure::Failure, output::Format};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay ack RECEIPT
  forebay ack RECEIPT RECEIPT -o json")]
pub struct Ack {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// Receipts of the deliveries
    #[arg(required = true, value_name = "RECEIPT")]
    receipts: Vec<String>,
}

impl Ack {
    /// Acknowledges the deliveries.
    pub async fn run(self) -> Result<(), Failure> {
        let results = self.connection.client().await?.ack(self.receipts.clone()).await?;
        let results = results.into_iter().map(|result| result.map(|()| NackOutcome::default())).collect();
        settled::print(&self.format, self.receipts, results)
    }
}
