//! The flags of `forebay operation`.

use clap::Args;

use crate::{output::Format, verbs::connection::Connection};

/// The flags of `forebay operation list`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay operation list
  forebay operation list -o json")]
pub struct List {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// The most operations to list
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

/// Flags that the verbs for one operation share.
#[derive(Args)]
pub struct One {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// The operation's id
    pub operation: String,
}

/// The flags of `forebay operation get`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay operation get 0b1f6a1e55a14b0c8a52b8a1c2d3e4f5
  forebay operation get 0b1f6a1e55a14b0c8a52b8a1c2d3e4f5 -o wide")]
pub struct Get {
    /// Which one.
    #[command(flatten)]
    pub one: One,
}

/// The flags of `forebay operation watch`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay operation watch 0b1f6a1e55a14b0c8a52b8a1c2d3e4f5")]
pub struct Watch {
    /// Which one.
    #[command(flatten)]
    pub one: One,
}

/// The flags of `forebay operation cancel`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay operation cancel 0b1f6a1e55a14b0c8a52b8a1c2d3e4f5
  forebay operation cancel 0b1f6a1e55a14b0c8a52b8a1c2d3e4f5 -o json")]
pub struct Cancel {
    /// Which one.
    #[command(flatten)]
    pub one: One,
}

/// The flags of `forebay operation rate`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay operation rate 0b1f6a1e55a14b0c8a52b8a1c2d3e4f5 100")]
pub struct Rate {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// The operation's id
    pub operation: String,
    /// The most items a second, over all shards
    pub rate: u32,
}
