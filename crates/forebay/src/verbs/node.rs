//! `forebay node`

use std::{io::Write as _, path::PathBuf};

use clap::{Args, Subcommand};
use forebay_node::{cluster, config::Config};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay node drain queue1 --config forebay.toml
  forebay node drain queue1 --undo --config forebay.toml")]
pub struct NodeCommand {
    /// What is done.
    #[command(subcommand)]
    verb: NodeVerb,
}

#[derive(Subcommand)]
enum NodeVerb {
    /// Move all shards away from a node, by the catalog of a configuration
    Drain {
        /// The node's name
        node: String,
        /// Let it own shards again
        #[arg(long)]
        undo: bool,
        /// The configuration file, which names the catalog
        #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
        config: PathBuf,
    },
}

impl NodeCommand {
    /// Drains a node, or undoes that.
    pub async fn run(self) -> Result<(), Failure> {
        let NodeVerb::Drain { node, undo, config } = self.verb;
        let config = Config::load(&config, Vec::new())?;
        cluster::drain_node(&config, &node, !undo).await.map_err(|error| Failure::new(error.to_string()))?;
        let line = match undo {
            false => format!("{node} drains: its shards move to other nodes (see `forebay nodes`)"),
            true => format!("{node} may own shards again"),
        };
        Ok(writeln!(std::io::stdout().lock(), "{line}")?)
    }
}
