//! `forebay consumer`

mod known;
mod list;
mod reset;
mod search;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  forebay consumer list
  forebay consumer reset worker-7 --yes"
)]
pub struct Consumer {
    /// The verb.
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List who asks for items, and who has leases
    List(list::ListConsumers),
    /// Release what a consumer has leased, so that others get it at once
    Reset(reset::Reset),
}

impl Consumer {
    /// Does what is asked for.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::List(verb) => verb.run().await,
            Verb::Reset(verb) => verb.run().await,
        }
    }
}
