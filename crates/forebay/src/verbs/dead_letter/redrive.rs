//! `forebay dead-letter redrive`

use std::time::Duration;

use clap::Args;
use forebay_client::v1::{OperationKind, StartOperationRequest};
use forebay_proto::time::to_duration;

use crate::{
    failure::Failure,
    verbs::{bulk::Bulk, follow},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dead-letter redrive mail --dry-run
  forebay dead-letter redrive mail --filter 'reason = \"timeout*\"' --rate 100
  forebay dead-letter redrive mail --max-redrives 3 --yes
  forebay dead-letter redrive mail --to-topic mail-slow --ttl 1h --yes --detach")]
pub struct Redrive {
    /// The topic whose dead letters return
    topic: String,
    /// The topic to which they return [default: their own]
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TOPIC")]
    to_topic: String,
    /// So long after their return they expire, as in 1h [default: never]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    ttl: Option<Duration>,
    /// Skip those that were redriven so often already
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    max_redrives: Option<u32>,
    /// Flags that all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

impl Redrive {
    /// Returns dead letters.
    pub async fn run(self) -> Result<(), Failure> {
        let query = follow::of_topic(OperationKind::Redrive, self.topic);
        let query = StartOperationRequest {
            to_topic: self.to_topic,
            ttl: self.ttl.map(to_duration),
            max_redrives: self.max_redrives,
            ..query
        };
        self.bulk.run(query, "redriven").await
    }
}
