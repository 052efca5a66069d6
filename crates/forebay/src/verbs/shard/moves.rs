//! `forebay shard move` and `forebay shard unpin`

use clap::Args;
use forebay_node::cluster;

use crate::{failure::Failure, verbs::catalog::Catalog};

/// The flags of `move`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard move 3 queue1 --config forebay.toml")]
pub struct Move {
    /// The shard's number
    shard: u32,
    /// The node's name
    node: String,
    /// Whose shards.
    #[command(flatten)]
    catalog: Catalog,
}

impl Move {
    /// Pins a shard to a node.
    pub async fn run(self) -> Result<(), Failure> {
        let home = assign(&self.catalog, self.shard, Some(&self.node)).await?;
        self.catalog.confirm(&format!("shard {} is pinned to {home}", self.shard))
    }
}

/// The flags of `unpin`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard unpin 3 --config forebay.toml")]
pub struct Unpin {
    /// The shard's number
    shard: u32,
    /// Whose shards.
    #[command(flatten)]
    catalog: Catalog,
}

impl Unpin {
    /// Ends a shard's pin.
    pub async fn run(self) -> Result<(), Failure> {
        let home = assign(&self.catalog, self.shard, None).await?;
        self.catalog.confirm(&format!("shard {} is no longer pinned to {home}", self.shard))
    }
}

/// Pins a shard to a node, or ends its pin. Returns the node.
async fn assign(catalog: &Catalog, shard: u32, node: Option<&str>) -> Result<String, Failure> {
    let pinned = cluster::pin(&catalog.config()?, shard, node).await;
    Ok(pinned.map_err(|error| Failure::new(error.to_string()))?.to_string())
}
