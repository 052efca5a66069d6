//! `forebay dead-letter delete`

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
  forebay dead-letter delete mail --dry-run
  forebay dead-letter delete mail --filter 'age > 240h' --yes")]
pub struct Delete {
    /// The topic whose dead letters are deleted
    topic: String,
    /// Flags that all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

impl Delete {
    /// Deletes dead letters.
    pub async fn run(self) -> Result<(), Failure> {
        self.bulk.run(follow::of_topic(OperationKind::DeleteDead, self.topic), "deleted").await
    }
}
