//! `forebay nack`

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use forebay_client::NackAction;

use super::{connection::Connection, settled};
use crate::{failure::Failure, output::Format, parse};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay nack RECEIPT --delay 5s
  forebay nack RECEIPT --release --metadata 'page 7'
  forebay nack RECEIPT --dead-letter --reason 'no such address'")]
pub struct Nack {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// Deliver the items again after this time, as in 5s [default: the retry delay of the
    /// topic, which is at once where none is set]
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with = "dead_letter")]
    delay: Option<Duration>,
    /// Do not count a failure: the work was not begun, or is to be gone on with
    #[arg(long, conflicts_with = "dead_letter")]
    release: bool,
    /// Send the items to the dead letters at once
    #[arg(long)]
    dead_letter: bool,
    /// Replace the items' metadata
    #[arg(long, value_name = "TEXT")]
    metadata: Option<String>,
    /// The reason; stored with a dead letter
    #[arg(long, value_parser = parse::free_text(), default_value = "", hide_default_value = true)]
    reason: String,
    /// Receipts of the deliveries
    #[arg(required = true, value_name = "RECEIPT")]
    receipts: Vec<String>,
}

impl Nack {
    /// Returns the items.
    pub async fn run(self) -> Result<(), Failure> {
        let action = match (self.dead_letter, self.release) {
            (true, _) => NackAction::DeadLetter,
            (false, true) => NackAction::Release(self.delay.unwrap_or_default()),
            (false, false) => NackAction::Fail(self.delay),
        };
        let metadata = self.metadata.map(Bytes::from);
        let nack = |receipt: &String| forebay_client::Nack {
            metadata: metadata.clone(),
            ..forebay_client::Nack::new(receipt, action).reason(&self.reason)
        };
        let nacks = self.receipts.iter().map(nack).collect();
        let results = self.connection.client().await?.nack(nacks).await?;
        settled::print(&self.format, self.receipts, results)
    }
}
