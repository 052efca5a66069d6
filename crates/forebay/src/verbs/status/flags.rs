//! The flags of `forebay status`.

use std::time::Duration;

use clap::Args;

use crate::{output::Format, verbs::connection::Connection};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay status
  forebay status --all-namespaces --age 10m
  forebay status -o json

Exit status: 0 nothing is wrong, 1 something may need somebody, 2 something needs somebody now.")]
pub struct Status {
    /// Which node is asked, and for whom.
    #[command(flatten)]
    pub connection: Connection,
    /// How the answer is printed.
    #[command(flatten)]
    pub format: Format,
    /// How old a ready item may be, as in 5m
    #[arg(long, value_parser = humantime::parse_duration, default_value = "5m", value_name = "TIME")]
    pub age: Duration,
    /// How many dead letters a topic may have
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub dead_letters: u64,
    /// Look at the topics of all namespaces
    #[arg(long)]
    pub all_namespaces: bool,
}
