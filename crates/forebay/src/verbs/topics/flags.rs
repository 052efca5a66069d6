//! The flags of `forebay topics`.

use clap::Args;

use crate::{output::Format, verbs::connection::Connection};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topics
  forebay topics --prefix mail/ --limit 10
  forebay topics -o json")]
pub struct Topics {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// List only topics whose names begin with this text
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    pub prefix: String,
    /// The most topics to list
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}
