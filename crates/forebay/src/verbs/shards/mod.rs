//! `forebay shards`

mod list;
mod moves;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::connection::{Connection, Format};
use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shards
  forebay shards move 3 queue1 --config forebay.toml
  forebay shards unpin 3 --config forebay.toml")]
pub struct Shards {
    /// Which node is asked.
    #[command(flatten)]
    connection: Connection,
    /// How the list is printed.
    #[command(flatten)]
    format: Format,
    /// What is done.
    #[command(subcommand)]
    verb: Option<ShardVerb>,
}

#[derive(Subcommand)]
enum ShardVerb {
    /// List the shards and who owns them
    List,
    /// Move a shard to a node and pin it there, by the catalog of a configuration
    Move {
        /// The shard's number
        shard: u32,
        /// The node's name
        node: String,
        /// The configuration file, which names the catalog
        #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
        config: PathBuf,
    },
    /// Let a pinned shard be moved for evenness again
    Unpin {
        /// The shard's number
        shard: u32,
        /// The configuration file, which names the catalog
        #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
        config: PathBuf,
    },
}

impl Shards {
    /// Lists the shards, or moves one.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            None | Some(ShardVerb::List) => list::list(&self.connection, &self.format).await,
            Some(ShardVerb::Move { shard, node, config }) => moves::assign(shard, Some(&node), &config).await,
            Some(ShardVerb::Unpin { shard, config }) => moves::assign(shard, None, &config).await,
        }
    }
}
