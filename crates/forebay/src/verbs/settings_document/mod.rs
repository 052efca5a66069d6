//! `forebay settings`

mod apply;
mod differences;
mod export;

use clap::{Args, Subcommand};

use apply::{Apply, Diff};
use export::Export;

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay settings export --namespace - > settings.json
  forebay settings diff settings.json --namespace -
  forebay settings apply settings.json --namespace - --reason 'as agreed'")]
pub struct SettingsCommand {
    /// The verb.
    #[command(subcommand)]
    verb: SettingsVerb,
}

#[derive(Subcommand)]
enum SettingsVerb {
    /// Print what is set, as a document in JSON
    Export(Export),
    /// Set what a document says, and remove what it does not name
    Apply(Apply),
    /// Show what a document would change
    Diff(Diff),
}

impl SettingsCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            SettingsVerb::Export(flags) => flags.run().await,
            SettingsVerb::Apply(flags) => flags.run().await,
            SettingsVerb::Diff(flags) => flags.run().await,
        }
    }
}
