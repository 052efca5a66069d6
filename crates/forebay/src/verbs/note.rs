//! The flags that changes of topics and namespaces share.

use clap::Args;
use forebay_client::ChangeNote;

use crate::parse;

/// How a change is made.
#[derive(Args, Clone)]
pub struct Note {
    /// Why, for the log of the server
    #[arg(long, value_name = "TEXT", value_parser = parse::free_text(), default_value = "")]
    #[arg(hide_default_value = true)]
    reason: String,
    /// Only check and show what would be; change nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl From<Note> for ChangeNote {
    fn from(note: Note) -> Self {
        Self { reason: note.reason, dry_run: note.dry_run }
    }
}
