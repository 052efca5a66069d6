//! `forebay namespace`

mod delete;
mod get;
mod list;
mod put;

use clap::{Args, Subcommand};

use delete::Delete;
use get::Get;
use list::ListNamespaces;
use put::Put;

use super::pauses::{PauseFlags, ResumeFlags};
use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace list
  forebay namespace get --namespace shop -o json
  forebay namespace put --namespace shop --default-max-attempts 5 --retry-delay 10s
  forebay namespace pause --namespace shop --side dequeue --for 2h --note 'database move'
  forebay namespace resume --namespace shop")]
pub struct NamespaceCommand {
    /// The verb.
    #[command(subcommand)]
    verb: NamespaceVerb,
}

#[derive(Subcommand)]
enum NamespaceVerb {
    /// List the namespaces that have topics, counts, settings or pauses
    List(ListNamespaces),
    /// Show the namespace, with the sums over its topics
    Get(Get),
    /// Set what counts for the items of all topics that have no settings of their own
    Put(Put),
    /// Remove the settings, pauses and counts of the namespace and of its topics, if it has no items
    Delete(Delete),
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
    /// Flags that all such verbs share.
    #[command(flatten)]
    pausing: PauseFlags,
}

/// The flags of `forebay namespace resume`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace resume --namespace shop
  forebay namespace resume --namespace shop --side dequeue")]
struct Resume {
    /// Flags that all such verbs share.
    #[command(flatten)]
    resuming: ResumeFlags,
}

impl NamespaceCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            NamespaceVerb::List(verb) => verb.run().await,
            NamespaceVerb::Get(verb) => verb.run().await,
            NamespaceVerb::Put(verb) => verb.run().await,
            NamespaceVerb::Delete(verb) => verb.run().await,
            NamespaceVerb::Pause(flags) => flags.pausing.run("").await,
            NamespaceVerb::Resume(flags) => flags.resuming.run("").await,
        }
    }
}
