//! The flags of `forebay topic`.

use clap::Args;

use crate::{output::Format, verbs::connection::Connection};

/// The flags of `forebay topic list`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic list
  forebay topic list --filter 'topic = \"mail*\" AND dead > 0' -o json
  forebay topic list --order -oldest --limit 20
  forebay topic list --all-namespaces -o wide")]
pub struct List {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// Which topics: terms joined by AND, of topic, namespace, state, ready, leased, scheduled, dead, waiting
    /// and ready_age
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FILTER")]
    pub filter: String,
    /// By name, or the topics that have the most of a figure
    #[arg(
        long,
        default_value = "name",
        value_parser = ["name", "-ready", "-leased", "-scheduled", "-dead", "-oldest"],
        allow_hyphen_values = true
    )]
    pub order: String,
    /// The most topics to list; in order of a figure at most 1,000
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// List the topics of all namespaces
    #[arg(long)]
    pub all_namespaces: bool,
}

/// The flags of `forebay topic get`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic get mail
  forebay topic get mail -o json")]
pub struct Get {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// The topic
    pub topic: String,
}
