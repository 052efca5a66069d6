//! `forebay nack`

use std::time::Duration;

use clap::Args;
use forebay_client::NackAction;

use super::{connection::Connection, settled};
use crate::failure::Failure;

/// The flags.
#[derive(Args)]
pub struct Nack {
    /// Server, namespace and output format.
    #[command(flatten)]
    connection: Connection,
    /// Deliver the items again after this time, as in 5s [default: at once]
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with = "dead_letter")]
    delay: Option<Duration>,
    /// Send the items to the dead letters at once
    #[arg(long)]
    dead_letter: bool,
    /// The reason; stored with a dead letter
    #[arg(long, default_value = "")]
    reason: String,
    /// Receipts of the deliveries
    #[arg(required = true, value_name = "RECEIPT")]
    receipts: Vec<String>,
}

impl Nack {
    /// Returns the items.
    pub async fn run(self) -> Result<(), Failure> {
        let action = match self.dead_letter {
            true => NackAction::DeadLetter,
            false => NackAction::Fail(self.delay.unwrap_or_default()),
        };
        let nack = |receipt: &String| forebay_client::Nack::new(receipt, action).reason(&self.reason);
        let nacks = self.receipts.iter().map(nack).collect();
        let results = self.connection.client().await?.nack(nacks).await?;
        settled::print(self.connection.output, &self.receipts, results)
    }
}
