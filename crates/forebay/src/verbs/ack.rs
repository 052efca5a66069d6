//! `forebay ack`

use clap::Args;

use super::{connection::Connection, settled};
use crate::failure::Failure;

/// The flags.
#[derive(Args)]
pub struct Ack {
    /// Server, namespace and output format.
    #[command(flatten)]
    connection: Connection,
    /// Receipts of the deliveries
    #[arg(required = true, value_name = "RECEIPT")]
    receipts: Vec<String>,
}

impl Ack {
    /// Acknowledges the deliveries.
    pub async fn run(self) -> Result<(), Failure> {
        let results = self.connection.client().await?.ack(self.receipts.clone()).await?;
        settled::print(self.connection.output, &self.receipts, results)
    }
}
