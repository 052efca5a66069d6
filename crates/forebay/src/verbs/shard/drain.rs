//! `forebay shard drain`

use clap::Args;
use forebay_node::cluster;

use crate::{failure::Failure, verbs::catalog::Catalog};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard drain 3 --config forebay.toml
  forebay shard drain 3 --undo --config forebay.toml")]
pub struct Drain {
    /// The shard's number
    shard: u32,
    /// Let it take new items again
    #[arg(long)]
    undo: bool,
    /// Whose shards.
    #[command(flatten)]
    catalog: Catalog,
}

impl Drain {
    /// Drains a shard, or undoes that.
    pub async fn run(self) -> Result<(), Failure> {
        let drained = cluster::drain_shard(&self.catalog.config()?, self.shard, !self.undo).await;
        drained.map_err(|error| Failure::new(error.to_string()))?;
        let shard = self.shard;
        self.catalog.confirm(&match self.undo {
            false => {
                format!("shard {shard} takes no new items; `forebay shard list` says what is left in it")
            }
            true => format!("shard {shard} takes new items again"),
        })
    }
}
