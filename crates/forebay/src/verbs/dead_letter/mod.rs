//! `forebay dead-letter`

mod delete;
mod flags;
mod groups;
mod redrive;

use clap::{Args, Subcommand};
use delete::Delete;
use flags::{Groups, List};
use redrive::Redrive;

use super::item;
use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dead-letter groups
  forebay dead-letter groups mail
  forebay dead-letter list mail --limit 20
  forebay dead-letter get 3-1041
  forebay dead-letter redrive mail --filter 'reason = \"timeout*\"' --yes
  forebay dead-letter delete mail --filter 'age > 240h' --dry-run")]
pub struct DeadLetterCommand {
    /// The verb.
    #[command(subcommand)]
    verb: DeadLetterVerb,
}

#[derive(Subcommand)]
enum DeadLetterVerb {
    /// List the dead letters of a topic, the latest first
    List(List),
    /// Group the latest dead letters by why they died
    Groups(Groups),
    /// Show one dead letter, or another item
    #[command(after_help = "\
Examples:
  forebay dead-letter get 3-1041
  forebay dead-letter get 3-1041 --payload hex
  forebay dead-letter get 3-1041 -o json")]
    Get(item::Get),
    /// Return dead letters to their topic or to another one, without failures
    Redrive(Redrive),
    /// Delete dead letters
    Delete(Delete),
}

impl DeadLetterCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            DeadLetterVerb::List(flags) => item::list(&flags.into()).await,
            DeadLetterVerb::Groups(flags) => groups::run(&flags).await,
            DeadLetterVerb::Get(flags) => item::get(&flags).await,
            DeadLetterVerb::Redrive(verb) => verb.run().await,
            DeadLetterVerb::Delete(verb) => verb.run().await,
        }
    }
}
