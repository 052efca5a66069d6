//! The flags of verbs that change the catalog of a cluster: the nodes act on it within a second.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use clap::Args;
use forebay_node::config::Config;

use crate::failure::Failure;

/// Which catalog, and how much is said.
#[derive(Args)]
pub struct Catalog {
    /// The configuration file, which names the catalog
    #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
    config: PathBuf,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

impl Catalog {
    /// Reads the configuration.
    pub fn config(&self) -> Result<Config, Failure> {
        Ok(Config::load(&self.config, Vec::new())?)
    }

    /// Says what was done.
    pub fn confirm(&self, line: &str) -> Result<(), Failure> {
        match self.quiet {
            true => Ok(()),
            false => Ok(writeln!(io::stdout().lock(), "{line}")?),
        }
    }
}
