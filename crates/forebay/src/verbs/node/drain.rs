//! `forebay node drain`

use clap::Args;
use forebay_node::cluster;

use crate::{failure::Failure, verbs::catalog::Catalog};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay node drain queue1 --config forebay.toml
  forebay node drain queue1 --undo --config forebay.toml")]
pub struct Drain {
    /// The node's name
    node: String,
    /// Let it own shards again
    #[arg(long)]
    undo: bool,
    /// Whose nodes.
    #[command(flatten)]
    catalog: Catalog,
}

impl Drain {
    /// Drains a node, or undoes that.
    pub async fn run(self) -> Result<(), Failure> {
        let (node, config) = (&self.node, self.catalog.config()?);
        cluster::drain_node(&config, node, !self.undo)
            .await
            .map_err(|error| Failure::new(error.to_string()))?;
        self.catalog.confirm(&match self.undo {
            false => format!("{node} drains: its shards move to other nodes (see `forebay node list`)"),
            true => format!("{node} may own shards again"),
        })
    }
}
