//! `forebay dead-letter`

mod delete;
mod redrive;

use clap::{Args, Subcommand};

use delete::Delete;
use redrive::Redrive;

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dead-letter redrive mail --filter 'reason = \"timeout*\"' --yes
  forebay dead-letter delete mail --filter 'age > 240h' --dry-run")]
pub struct DeadLetterCommand {
    /// What is done.
    #[command(subcommand)]
    verb: DeadLetterVerb,
}

#[derive(Subcommand)]
enum DeadLetterVerb {
    /// Return dead letters to their topic or to another one, without failures
    Redrive(Redrive),
    /// Delete dead letters
    Delete(Delete),
}

impl DeadLetterCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            DeadLetterVerb::Redrive(verb) => verb.run().await,
            DeadLetterVerb::Delete(verb) => verb.run().await,
        }
    }
}
