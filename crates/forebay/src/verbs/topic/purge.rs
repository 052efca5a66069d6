//! `forebay topic purge`

use clap::Args;
use forebay_client::v1::{OperationKind, StartOperationRequest};

use crate::{
    failure::Failure,
    verbs::{bulk::Bulk, follow},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic purge mail --dry-run
  forebay topic purge mail --filter 'age > 1h AND priority >= 5' --reason 'sent by hand'
  forebay topic purge mail --leased --expect-at-most 5000 --yes")]
pub struct Purge {
    /// The topic
    topic: String,
    /// Remove leased items too: their receipts are over then
    #[arg(long)]
    leased: bool,
    /// Flags that all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

impl Purge {
    /// Removes items.
    pub async fn run(self) -> Result<(), Failure> {
        let query = follow::of_topic(OperationKind::Purge, self.topic);
        self.bulk.run(StartOperationRequest { leased: self.leased, ..query }, "removed").await
    }
}
