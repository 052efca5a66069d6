//! `forebay item`

mod flags;
mod get;
mod list;
mod show;

use clap::{Args, Subcommand};
pub use flags::{Get, List, Listing, State};
pub use get::run as get;
pub use list::run as list;

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item list --topic mail
  forebay item list --topic mail --state dead --payload text --limit 20
  forebay item list --topic mail --state leased --output json
  forebay item get 3-1041 --payload hex")]
pub struct ItemCommand {
    /// What is done.
    #[command(subcommand)]
    verb: ItemVerb,
}

#[derive(Subcommand)]
enum ItemVerb {
    /// List items of a topic in one state, without leasing them
    List(List),
    /// Show one item, wherever it is
    Get(Get),
}

impl ItemCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            ItemVerb::List(flags) => list(&flags).await,
            ItemVerb::Get(flags) => get(&flags).await,
        }
    }
}
