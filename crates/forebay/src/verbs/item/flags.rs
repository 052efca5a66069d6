//! The flags of `forebay item`.

use clap::Args;
use forebay_client::v1::ItemState;

use crate::{
    output::{Format, PayloadForm},
    verbs::connection::Connection,
};

/// The flags of `forebay item list`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item list --topic mail
  forebay item list --topic mail --state dead --payload text --limit 20
  forebay item list --topic mail --filter 'age > 1h AND priority <= 5'
  forebay item list --topic mail --state leased -o json")]
pub struct List {
    /// The topic
    #[arg(long, value_name = "NAME")]
    pub topic: String,
    /// Which items: ready ones in the order of delivery, leased ones by the ends of their leases, scheduled
    /// ones by priority and time, dead letters with the latest first
    #[arg(long, value_enum, default_value = "ready")]
    pub state: State,
    /// How many, and how they are printed.
    #[command(flatten)]
    pub listing: ListFlags,
}

/// Flags that the lists of items and of dead letters share.
#[derive(Args)]
pub struct ListFlags {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// Only items that pass, as in "age > 1h AND priority <= 5", by age, priority and attempt; leased ones
    /// also by consumer, all others by redrives, dead letters by reason
    #[arg(long, default_value = "", hide_default_value = true)]
    pub filter: String,
    /// The most items to list
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// How payloads are printed; JSON has them in base64
    #[arg(long, value_enum, default_value = "none")]
    pub payload: PayloadForm,
    /// The most bytes of each payload [default: 1 KiB; at most 256 KiB]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "BYTES")]
    pub max_payload_bytes: u32,
}

/// The flags of `forebay item get`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item get 3-1041
  forebay item get 3-1041 --payload hex --max-payload-bytes 65536
  forebay item get 3-1041 -o json")]
pub struct Get {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// The item's id, as 3-1041
    pub item: String,
    /// How the payload is printed; JSON has it in base64
    #[arg(long, value_enum, default_value = "text")]
    pub payload: PayloadForm,
    /// The most bytes of the payload [default: 1 KiB; at most 256 KiB]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "BYTES")]
    pub max_payload_bytes: u32,
}

/// Which items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum State {
    /// They could be leased.
    Ready,
    /// They are leased.
    Leased,
    /// They are not due yet.
    Scheduled,
    /// They are dead letters.
    Dead,
}

impl From<State> for ItemState {
    fn from(state: State) -> Self {
        match state {
            State::Ready => Self::Ready,
            State::Leased => Self::Leased,
            State::Scheduled => Self::Scheduled,
            State::Dead => Self::Dead,
        }
    }
}
