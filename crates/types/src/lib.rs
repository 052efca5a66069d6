//! The vocabulary of Forebay: what every other crate names. No I/O, no async, no SQL, no protobuf.
#![doc = include_str!("../README.md")]

mod address;
mod clock;
mod error;
mod failure;
pub mod filter;
mod free_text;
mod id;
mod item;
mod key;
mod lifecycle;
mod limits;
mod name;
mod nearest;
pub mod planted;
mod policy;
mod receipt;
mod schedule;
mod settings;
mod text;
mod time;

pub use address::is_loopback;
pub use clock::{Clock, SystemClock};
pub use error::{Elsewhere, Fate, Reason, Refusal};
pub use failure::{DeathCause, Failure, FailureCause};
pub use free_text::{CutAt, cut_text};
pub use id::{ClusterId, Incarnation, ItemId, Seq, ShardId, TopicId};
pub use item::{Body, DeliveryPolicy, Headers, ItemAttributes, TRACE_HEADERS, Waits};
pub use key::{Horizon, Key};
pub use lifecycle::{Ending, State, after_failure, after_rejection, after_release};
pub use limits::Limits;
pub use name::{
    ALL_NAMESPACES, NameError, Namespace, NodeName, NodeNameError, Topic, TopicName, check_name,
    check_namespace, is_name_byte, is_prefix, topic_covers, topics_with_prefix,
};
pub use nearest::{instead, nearest, with_nearest};
pub use policy::{NOTE_BYTES_MAX, PAUSED_BY_BYTES_MAX, Pause, Policy, PolicyChanges, PolicyRow, Side};
pub use receipt::{Receipt, ReceiptError};
pub use schedule::Schedule;
pub use settings::{SettingsRow, TopicSettings};
pub use text::{is_hidden, visible, visible_lines};
pub use time::{Monotonic, Timestamp, TimestampError};
