//! The flags of verbs that change shards and nodes: by a call to a node, or in the catalog of a
//! configuration. The nodes act on it within a second.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use clap::Args;
use forebay_client::Client;
use forebay_config::Config;

use super::{connection::Connection, note::Note};
use crate::failure::Failure;

/// By whom the change is made, and how much is said.
#[derive(Args)]
pub struct Change {
    /// A node that makes the change.
    #[command(flatten)]
    connection: Connection,
    /// Make the change in the catalog of this configuration, whether any node runs or not
    #[arg(long, env = "FOREBAY_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// How it is made.
    #[command(flatten)]
    note: Note,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Maker of a change.
pub enum By {
    /// This program, in the catalog of a configuration.
    Config(Box<Config>),
    /// A node.
    Node(Box<Client>),
}

impl Change {
    /// Returns the maker of the change.
    pub async fn by(&self) -> Result<By, Failure> {
        match &self.config {
            Some(path) => Ok(By::Config(Box::new(Config::load(path, Vec::new())?))),
            None => Ok(By::Node(Box::new(self.connection.client().await?))),
        }
    }

    /// How it is made.
    pub fn note(&self) -> Note {
        self.note.clone()
    }

    /// Says what was done, or what would be.
    pub fn confirm(&self, line: &str) -> Result<(), Failure> {
        let dry = if self.note().dry_run { "nothing was changed; without --dry-run: " } else { "" };
        match self.quiet {
            true => Ok(()),
            false => Ok(writeln!(io::stdout().lock(), "{dry}{line}")?),
        }
    }
}

/// Why it was not done.
pub fn failed(error: impl ToString) -> Failure {
    Failure::new(error.to_string())
}
