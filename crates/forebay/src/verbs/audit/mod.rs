//! `forebay audit`

mod list;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay audit list --since 24h
  forebay audit list --namespace - --method RevokeToken -o jsonl")]
pub struct AuditCommand {
    /// The verb.
    #[command(subcommand)]
    verb: AuditVerb,
}

#[derive(Subcommand)]
enum AuditVerb {
    /// List calls that changed something or showed payloads, the latest first
    List(list::List),
}

impl AuditCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            AuditVerb::List(flags) => flags.run().await,
        }
    }
}
