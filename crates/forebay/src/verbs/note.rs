//! The flags that changes of topics and namespaces share.

use clap::Args;

use crate::parse;

/// How a change is made.
#[derive(Args, Clone)]
pub struct Note {
    /// Why, for the log of the server
    #[arg(long, value_name = "TEXT", value_parser = parse::free_text(), default_value = "")]
    #[arg(hide_default_value = true)]
    pub reason: String,
    /// Only check and show what would be; change nothing
    #[arg(long)]
    pub dry_run: bool,
}
