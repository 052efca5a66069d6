//! `forebay topic`

mod delete;
mod explain;
mod flags;
mod get;
mod list;
mod pause;
mod purge;
mod put;
mod reset_leases;
mod watch;

use clap::{Args, Subcommand};

use delete::Delete;
use explain::Explain;
use flags::{Get, List};
pub use list::print as print_topics;
use pause::{Pause, Resume};
use purge::Purge;
use put::Put;
use reset_leases::ResetLeases;
use watch::Watch;

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic list
  forebay topic list --filter 'topic = \"mail*\" AND dead > 0' --output json
  forebay topic list --order -oldest --limit 20
  forebay topic get mail
  forebay topic pause mail --side dequeue --for 2h --note 'the mail server is down'
  forebay topic put mail --default-lease 2m --retry-delay 10s
  forebay topic explain mail
  forebay topic watch mail --interval 5s
  forebay topic purge mail --filter 'age > 1h' --dry-run
  forebay topic reset-leases mail --yes")]
pub struct TopicCommand {
    /// The verb.
    #[command(subcommand)]
    verb: TopicVerb,
}

#[derive(Subcommand)]
enum TopicVerb {
    /// List topics, whatever state their items are in
    List(List),
    /// Show one topic, with its priorities
    Get(Get),
    /// Set what counts for the items of a topic: leases, attempts, retries, dead letters
    Put(Put),
    /// Remove the settings and the pauses of a topic without items
    Delete(Delete),
    /// Pause a topic: it takes no new items, hands nothing out, or both
    Pause(Pause),
    /// End pauses of a topic
    Resume(Resume),
    /// Say why items of a topic are not delivered
    Explain(Explain),
    /// Print the figures of a topic again and again
    Watch(Watch),
    /// Remove items of a topic
    Purge(Purge),
    /// Release the leases of a topic: items are delivered again, and no failure counts
    ResetLeases(ResetLeases),
}

impl TopicCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            TopicVerb::List(flags) => list::run(&flags).await,
            TopicVerb::Get(flags) => get::run(&flags).await,
            TopicVerb::Put(verb) => verb.run().await,
            TopicVerb::Delete(verb) => verb.run().await,
            TopicVerb::Pause(verb) => verb.run().await,
            TopicVerb::Resume(verb) => verb.run().await,
            TopicVerb::Explain(verb) => verb.run().await,
            TopicVerb::Watch(verb) => verb.run().await,
            TopicVerb::Purge(verb) => verb.run().await,
            TopicVerb::ResetLeases(verb) => verb.run().await,
        }
    }
}
