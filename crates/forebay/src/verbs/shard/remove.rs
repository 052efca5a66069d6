//! `forebay shard remove`

use clap::Args;
use forebay_node::cluster;

use crate::{failure::Failure, verbs::catalog::Catalog};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard remove 3 --config forebay.toml
  forebay shard remove 3 --lost --config forebay.toml")]
pub struct Remove {
    /// The shard's number
    shard: u32,
    /// Its server is gone for good: remove it with all that is in it
    #[arg(long)]
    lost: bool,
    /// Whose shards.
    #[command(flatten)]
    catalog: Catalog,
}

impl Remove {
    /// Removes a shard.
    pub async fn run(self) -> Result<(), Failure> {
        let removed = cluster::remove_shard(&self.catalog.config()?, self.shard, self.lost).await;
        removed.map_err(|error| Failure::new(error.to_string()))?;
        let shard = self.shard;
        self.catalog.confirm(&match self.lost {
            false => format!("shard {shard} was removed"),
            true => format!(
                "shard {shard} was removed with all that was in it: its items are lost, and what was stored \
                 there under a dedupe key or a request id may be stored again"
            ),
        })
    }
}
