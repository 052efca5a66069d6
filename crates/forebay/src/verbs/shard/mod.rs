//! `forebay shard`

mod add;
mod drain;
mod list;
mod moves;
mod remove;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  forebay shard list
  forebay shard add mysql://forebay@db3:3306/forebay_0007 --config forebay.toml
  forebay shard drain 3 --config forebay.toml"
)]
pub struct Shard {
    /// The verb.
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the shards and who owns them
    List(list::ListShards),
    /// Add a shard: nodes take it over while they run
    Add(add::Add),
    /// Let a shard take no new items. What it has is delivered as before
    Drain(drain::Drain),
    /// Remove a drained shard in which nothing matters any more
    Remove(remove::Remove),
    /// Move a shard to a node and pin it there, by the catalog of a configuration
    Move(moves::Move),
    /// Let a pinned shard be moved for evenness again
    Unpin(moves::Unpin),
}

impl Shard {
    /// Does what is asked for.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::List(verb) => verb.run().await,
            Verb::Add(verb) => verb.run().await,
            Verb::Drain(verb) => verb.run().await,
            Verb::Remove(verb) => verb.run().await,
            Verb::Move(verb) => verb.run().await,
            Verb::Unpin(verb) => verb.run().await,
        }
    }
}
