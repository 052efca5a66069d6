//! `forebay topic`

mod flags;
mod get;
mod list;

use clap::{Args, Subcommand};

use flags::{Get, List};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic list
  forebay topic list --filter 'topic = \"mail*\" AND dead > 0' --output json
  forebay topic list --order -oldest --limit 20
  forebay topic get mail")]
pub struct TopicCommand {
    /// What is done.
    #[command(subcommand)]
    verb: TopicVerb,
}

#[derive(Subcommand)]
enum TopicVerb {
    /// List topics, whatever state their items are in
    List(List),
    /// Show one topic, with its priorities
    Get(Get),
}

impl TopicCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            TopicVerb::List(flags) => list::run(&flags).await,
            TopicVerb::Get(flags) => get::run(&flags).await,
        }
    }
}
