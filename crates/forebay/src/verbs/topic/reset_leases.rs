//! `forebay topic reset-leases`

use clap::Args;
use forebay_client::v1::OperationKind;

use crate::{
    failure::Failure,
    verbs::{bulk::Bulk, follow},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic reset-leases mail --dry-run
  forebay topic reset-leases mail --reason 'the workers are gone' --yes")]
pub struct ResetLeases {
    /// The topic
    topic: String,
    /// Flags that all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

impl ResetLeases {
    /// Releases leases.
    pub async fn run(self) -> Result<(), Failure> {
        self.bulk.run(follow::of_topic(OperationKind::ResetLeases, self.topic), "released").await
    }
}
