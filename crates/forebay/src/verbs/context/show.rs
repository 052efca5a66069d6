//! `forebay context show`

use std::io::{self, Write as _};

use clap::Args;

use crate::{contexts, failure::Failure};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay context show
  forebay context show prod")]
pub struct Show {
    /// Its name [default: the current one]
    name: Option<String>,
}

impl Show {
    /// Prints a context as the file has it: names of files, never what is in them.
    pub fn run(self) -> Result<(), Failure> {
        let context = contexts::chosen(self.name.as_deref())?;
        let text = toml::to_string(&context).map_err(anyhow::Error::from)?;
        Ok(io::stdout().lock().write_all(text.as_bytes())?)
    }
}
