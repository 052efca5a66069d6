//! `forebay node drain`

use clap::Args;
use forebay_client::v1;
use forebay_operators::cluster;

use crate::{
    failure::Failure,
    verbs::change::{By, Change, failed},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay node drain queue1 --reason 'a new disk'
  forebay node drain queue1 --undo
  forebay node drain queue1 --config forebay.toml")]
pub struct Drain {
    /// The node's name
    node: String,
    /// Let it own shards again
    #[arg(long)]
    undo: bool,
    /// By whom it is drained.
    #[command(flatten)]
    change: Change,
}

impl Drain {
    /// Drains a node, or undoes that.
    pub async fn run(self) -> Result<(), Failure> {
        let (node, undo, note) = (&self.node, self.undo, self.change.note());
        match self.change.by().await? {
            By::Config(config) => {
                cluster::drain_node(&config, node, !undo, note.dry_run).await.map_err(failed)?;
            }
            By::Node(client) => {
                let node = node.to_string();
                let (reason, dry_run) = (note.reason, note.dry_run);
                client.ask(v1::DrainNodeRequest { node, undo, reason, dry_run }).await?;
            }
        }
        self.change.confirm(&match self.undo {
            false => format!("{node} drains: its shards move to other nodes (see `forebay node list`)"),
            true => format!("{node} may own shards again"),
        })
    }
}
