//! The flags of `forebay dead-letter`.

use clap::Args;

use crate::{
    output::Format,
    verbs::{connection::Connection, item},
};

/// The flags of `forebay dead-letter list`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dead-letter list mail
  forebay dead-letter list mail --payload text --limit 20
  forebay dead-letter list mail --filter 'reason = \"timeout*\"'
  forebay dead-letter list mail -o json")]
pub struct List {
    /// The topic
    pub topic: String,
    /// How many, and how they are printed.
    #[command(flatten)]
    pub listing: item::ListFlags,
}

impl From<List> for item::List {
    fn from(List { topic, listing }: List) -> Self {
        Self { topic, state: item::State::Dead, listing }
    }
}

/// The flags of `forebay dead-letter groups`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dead-letter groups
  forebay dead-letter groups mail -o wide
  forebay dead-letter groups --window 1000 -o json")]
pub struct Groups {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// The topic [default: all of the namespace]
    pub topic: Option<String>,
    /// How many dead letters of each shard are looked at: the latest
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub window: u32,
}
