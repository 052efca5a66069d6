//! `forebay completions`

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::complete::script_of_names;
use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay completions bash > /etc/bash_completion.d/forebay
  forebay completions zsh > _forebay
  forebay completions fish > forebay.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the script of a shell.
    pub fn run(self, mut program: Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut program, "forebay", &mut script);
        script.extend(script_of_names(self.shell).as_bytes());
        Ok(io::stdout().lock().write_all(&script)?)
    }
}
