//! `forebay shards`

mod change;
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
  forebay shards add mysql://forebay@db3:3306/forebay_0007 --config forebay.toml
  forebay shards drain 3 --config forebay.toml
  forebay shards remove 3 --config forebay.toml
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
    /// Add a shard to the catalog of a configuration: nodes take it over while they run
    Add {
        /// Where it is, without a password. An empty schema is migrated
        url: String,
        /// The configuration file, which names the catalog
        #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
        config: PathBuf,
    },
    /// Let a shard take no new items. What it has is delivered as before
    Drain {
        /// The shard's number
        shard: u32,
        /// Let it take new items again
        #[arg(long)]
        undo: bool,
        /// The configuration file, which names the catalog
        #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
        config: PathBuf,
    },
    /// Remove a drained shard in which nothing matters any more
    Remove {
        /// The shard's number
        shard: u32,
        /// Its server is gone for good: remove it with all that is in it
        #[arg(long)]
        lost: bool,
        /// The configuration file, which names the catalog
        #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
        config: PathBuf,
    },
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
    /// Lists the shards, or changes one.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            None | Some(ShardVerb::List) => list::list(&self.connection, &self.format).await,
            Some(ShardVerb::Add { url, config }) => change::add(&url, &config).await,
            Some(ShardVerb::Drain { shard, undo, config }) => change::drain(shard, undo, &config).await,
            Some(ShardVerb::Remove { shard, lost, config }) => change::remove(shard, lost, &config).await,
            Some(ShardVerb::Move { shard, node, config }) => moves::assign(shard, Some(&node), &config).await,
            Some(ShardVerb::Unpin { shard, config }) => moves::assign(shard, None, &config).await,
        }
    }
}
