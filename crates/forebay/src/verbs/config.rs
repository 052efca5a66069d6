//! `forebay config`

use std::io::{self, Write as _};

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(arg_required_else_help = true, after_help = "Examples:\n  forebay config keys")]
pub struct ConfigCommand {
    /// The verb.
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print every key of the configuration with its variable, its default and its meaning, as Markdown
    #[command(after_help = "Examples:\n  forebay config keys")]
    Keys,
}

impl ConfigCommand {
    /// Does what is asked for.
    pub fn run(self) -> Result<(), Failure> {
        let Verb::Keys = self.verb;
        Ok(io::stdout().lock().write_all(forebay_config::page().as_bytes())?)
    }
}
