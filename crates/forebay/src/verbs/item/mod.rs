//! `forebay item`

mod cancel;
mod explain;
mod flags;
mod get;
mod list;
mod show;
mod update;

pub use cancel::Cancel;
use clap::{Args, Subcommand};
pub use explain::Explain;
pub use flags::{Get, List, ListFlags, State};
pub use get::run as get;
pub use list::run as list;
pub use update::Update;

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item list --topic mail
  forebay item list --topic mail --state dead --payload text --limit 20
  forebay item list --topic mail --state leased --output json
  forebay item get 3-1041 --payload hex
  forebay item explain 3-1041
  forebay item update 3-1041 --priority -5 --delay 0s
  forebay item cancel 3-1041 3-1042 --reason 'sent twice'")]
pub struct ItemCommand {
    /// The verb.
    #[command(subcommand)]
    verb: ItemVerb,
}

#[derive(Subcommand)]
enum ItemVerb {
    /// List items of a topic in one state, without leasing them
    List(List),
    /// Show one item, wherever it is
    Get(Get),
    /// Say why an item is not delivered
    Explain(Explain),
    /// Change an item that waits: priority, time of delivery, metadata, expiry
    Update(Update),
    /// Remove items, wherever they are: ready, leased, scheduled or dead
    Cancel(Cancel),
}

impl ItemCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            ItemVerb::List(flags) => list(&flags).await,
            ItemVerb::Get(flags) => get(&flags).await,
            ItemVerb::Explain(flags) => flags.run().await,
            ItemVerb::Update(flags) => flags.run().await,
            ItemVerb::Cancel(flags) => flags.run().await,
        }
    }
}
