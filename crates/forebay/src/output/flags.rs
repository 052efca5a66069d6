//! The flags that say how results are printed.

use std::io::{self, IsTerminal as _, Write as _};

use clap::{Args, ValueEnum};
use forebay_types::visible;

use super::time::{Style, TimeForm};

/// In which form a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Columns for people
    Table,
    /// The same with more columns
    Wide,
    /// One document, as JSON over HTTP has it: every field, with the same names
    Json,
    /// The same, an entry a line
    Jsonl,
    /// Only the name or the id of each entry, one a line
    Name,
}

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Also in a pipe
    Always,
    /// Not at all
    Never,
}

/// How payloads are shown in tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PayloadForm {
    /// As text with control characters escaped, or base64 if it is no text
    Text,
    /// As hexadecimal digits
    Hex,
    /// As base64
    Base64,
    /// Not at all
    None,
}

/// The output format, for verbs that print a list or results.
#[derive(Args)]
pub struct Format {
    /// How results are printed
    #[arg(short, long, value_enum, default_value = "table", help_heading = "Output")]
    pub output: Output,
    /// How tables look.
    #[command(flatten)]
    pub look: Look,
}

/// How tables look, and how much is said beside them.
#[derive(Args)]
pub struct Look {
    /// How times are shown in tables; JSON has RFC 3339
    #[arg(long, value_enum, default_value = "relative", value_name = "FORM", help_heading = "Output")]
    time: TimeForm,
    /// When tables have colours
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN", help_heading = "Output")]
    color: Color,
    /// Say nothing but results and errors
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

impl Look {
    /// Returns the style of cells.
    pub fn style(&self) -> Style {
        Style::new(self.time, self.has_color())
    }

    /// Says something on stderr that is no error.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            // Where nobody listens, nothing is lost.
            let _ = writeln!(io::stderr(), "forebay: {}", visible(text));
        }
    }

    /// Confirms on stdout what was done, where there is no other result.
    pub fn confirm(&self, text: &str) -> io::Result<()> {
        if self.quiet { Ok(()) } else { writeln!(io::stdout().lock(), "{}", visible(text)) }
    }

    fn has_color(&self) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
        }
    }
}

/// Says which shards could not be asked.
pub fn note_incomplete(look: &Look, shards: &[u32]) {
    note_shards(look, "these shards could not be asked, so what they have is missing", shards);
}

/// Says that the counts of a namespace are too low.
pub fn note_uncounted(look: &Look, shards: &[u32]) {
    let what = "these shards have a new owner, so what they had counted before is missing in the counts";
    note_shards(look, what, shards);
}

/// Says what holds of some shards, if there are any.
pub fn note_shards(look: &Look, what: &str, shards: &[u32]) {
    if !shards.is_empty() {
        let shards: Vec<String> = shards.iter().map(ToString::to_string).collect();
        look.note(&format!("{what}: {}", shards.join(", ")));
    }
}
