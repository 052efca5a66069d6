//! `forebay __complete`: names that exist, for the scripts of `forebay completions`. It is quick, and says
//! nothing if it can't help: whoever presses a key waits for it.

mod names;
mod scripts;
mod words;

use std::{
    io::{self, Write as _},
    time::Duration,
};

use clap::{Args, Command};
use forebay_types::is_name_byte;
use tokio::time::timeout;

use crate::failure::Failure;
pub use scripts::of as script_of_names;

/// How long it may take.
const TIMEOUT: Duration = Duration::from_millis(300);
/// More names are of no help.
const NAMES_MAX: usize = 200;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay __complete -- topic get ma
  forebay __complete -- enqueue --context prod --topic ''")]
pub struct Complete {
    /// The words after the name of the program, up to the one that is completed
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

impl Complete {
    /// Prints the names that begin as the last word does.
    pub async fn run(self, program: &Command) -> Result<(), Failure> {
        let Some((last, before)) = self.words.split_last() else { return Ok(()) };
        let Some(kind) = words::kind(program, before, last) else { return Ok(()) };
        let found = timeout(TIMEOUT, names::of(kind, words::servers(before), last)).await;
        let mut out = io::stdout().lock();
        let names = found.ok().flatten().unwrap_or_default();
        let names = names.iter().filter(|name| name.starts_with(last.as_str()) && is_plain(name));
        names.take(NAMES_MAX).try_for_each(|name| writeln!(out, "{name}"))?;
        Ok(())
    }
}

/// Whether a shell takes it as one word, whoever has chosen it.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_name_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_left_out() {
        for (name, plain) in
            [("a.b_c:d/e-1", true), ("", false), ("$(id)", false), ("a b", false), ("*", false)]
        {
            assert_eq!(is_plain(name), plain, "{name}");
        }
    }
}
