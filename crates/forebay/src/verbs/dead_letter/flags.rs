//! The flags of `forebay dead-letter`.

use clap::Args;

use crate::{
    output::{Format, PayloadForm},
    verbs::{connection::Connection, item},
};

/// The flags of `forebay dead-letter list`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dead-letter list --topic mail
  forebay dead-letter list --topic mail --payload text --limit 20
  forebay dead-letter list --topic mail -o json")]
pub struct List {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// The topic
    #[arg(long, value_name = "NAME")]
    pub topic: String,
    /// The most dead letters to list
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// How payloads are printed; JSON has them in base64
    #[arg(long, value_enum, default_value = "none")]
    pub payload: PayloadForm,
    /// The most bytes of each payload [default: 1 KiB; at most 256 KiB]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "BYTES")]
    pub max_payload_bytes: u32,
}

impl From<List> for item::List {
    fn from(flags: List) -> Self {
        let List { connection, format, topic, limit, payload, max_payload_bytes } = flags;
        Self { connection, format, topic, state: item::State::Dead, limit, payload, max_payload_bytes }
    }
}

/// The flags of `forebay dead-letter groups`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dead-letter groups
  forebay dead-letter groups --topic mail -o wide
  forebay dead-letter groups --window 1000 -o json")]
pub struct Groups {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// The topic; else all of the namespace
    #[arg(long, value_name = "NAME")]
    pub topic: Option<String>,
    /// How many dead letters of each shard are looked at: the latest
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub window: u32,
}
