//! `forebay shard move` and `forebay shard unpin`

use clap::Args;
use forebay_client::v1;
use forebay_operators::cluster;

use crate::{
    failure::Failure,
    verbs::change::{By, Change, failed},
};

/// The flags of `move`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard move 3 queue1
  forebay shard move 3 queue1 --config forebay.toml")]
pub struct Move {
    /// The shard's number
    shard: u32,
    /// The node's name
    node: String,
    /// By whom it is moved.
    #[command(flatten)]
    change: Change,
}

impl Move {
    /// Pins a shard to a node.
    pub async fn run(self) -> Result<(), Failure> {
        let home = assign(&self.change, self.shard, Some(&self.node)).await?;
        self.change.confirm(&format!("shard {} is pinned to {home}", self.shard))
    }
}

/// The flags of `unpin`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard unpin 3
  forebay shard unpin 3 --config forebay.toml")]
pub struct Unpin {
    /// The shard's number
    shard: u32,
    /// By whom it is moved.
    #[command(flatten)]
    change: Change,
}

impl Unpin {
    /// Ends a shard's pin.
    pub async fn run(self) -> Result<(), Failure> {
        let home = assign(&self.change, self.shard, None).await?;
        self.change.confirm(&format!("shard {} is no longer pinned to {home}", self.shard))
    }
}

/// Pins a shard to a node, or ends its pin. Returns its home.
async fn assign(change: &Change, shard: u32, node: Option<&str>) -> Result<String, Failure> {
    let note = change.note();
    match change.by().await? {
        By::Config(config) => {
            let pinned = cluster::pin(&config, shard, node, note.dry_run).await;
            Ok(pinned.map_err(failed)?.to_string())
        }
        By::Node(client) => {
            let request = v1::MoveShardRequest {
                shard_id: shard,
                node: node.unwrap_or_default().to_owned(),
                reason: note.reason,
                dry_run: note.dry_run,
            };
            let moved = client.ask(request).await?.shard;
            Ok(node.map(str::to_owned).or(moved.map(|it| it.wished_owner)).unwrap_or_default())
        }
    }
}
