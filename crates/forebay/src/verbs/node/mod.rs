//! `forebay node`

mod drain;
mod list;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  forebay node list
  forebay node drain queue1 --config forebay.toml"
)]
pub struct Node {
    /// The verb.
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the nodes of the cluster
    List(list::ListNodes),
    /// Move all shards away from a node, by the catalog of a configuration
    Drain(drain::Drain),
}

impl Node {
    /// Does what is asked for.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::List(verb) => verb.run().await,
            Verb::Drain(verb) => verb.run().await,
        }
    }
}
