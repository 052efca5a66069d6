//! `forebay namespace`

use clap::{Args, Subcommand};

use super::pauses::{Pausing, Resuming};
use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace pause --namespace shop --side dequeue --for 2h --note 'database move'
  forebay namespace resume --namespace shop")]
pub struct NamespaceCommand {
    /// What is done.
    #[command(subcommand)]
    verb: NamespaceVerb,
}

#[derive(Subcommand)]
enum NamespaceVerb {
    /// Pause all topics of the namespace, those to come included
    Pause(Pause),
    /// End the pauses of the namespace; those of single topics stay
    Resume(Resume),
}

/// The flags of `forebay namespace pause`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace pause --namespace shop
  forebay namespace pause --namespace shop --side enqueue --until 2026-12-24T18:00:00Z --note closed")]
struct Pause {
    /// What all such verbs share.
    #[command(flatten)]
    pausing: Pausing,
}

/// The flags of `forebay namespace resume`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace resume --namespace shop
  forebay namespace resume --namespace shop --side dequeue")]
struct Resume {
    /// What all such verbs share.
    #[command(flatten)]
    resuming: Resuming,
}

impl NamespaceCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            NamespaceVerb::Pause(flags) => flags.pausing.run("").await,
            NamespaceVerb::Resume(flags) => flags.resuming.run("").await,
        }
    }
}
