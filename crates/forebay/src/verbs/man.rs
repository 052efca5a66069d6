//! `forebay man`

use std::{fs, path::PathBuf};

use clap::{Args, Command};

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay man --out /usr/local/share/man/man1")]
pub struct Man {
    /// The folder for the pages; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Man {
    /// Writes a page for the program, and one for each verb.
    pub fn run(self, program: Command) -> Result<(), Failure> {
        let named = |error| Failure::new(format!("cannot write to {}: {error}", self.out.display()));
        fs::create_dir_all(&self.out).map_err(named)?;
        // Names the pages forebay-node-list and so on.
        clap_mangen::generate_to(program, &self.out).map_err(named)
    }
}
