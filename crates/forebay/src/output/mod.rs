//! Prints results: tables for people, JSON for programs.

mod flags;
mod list;
mod messages;
mod one;
mod protobuf;
mod table;
mod text;
mod time;

pub use flags::{Format, Look, Output, PayloadForm};
pub use flags::{note_incomplete, note_shards, note_uncounted};
pub use list::{Column, List, Row, print_json};
pub use messages::{active_topic, delivery, enqueued, extended, settled};
pub use one::{One, print_one};
pub use protobuf::{from_json, to_json};
pub use table::{Cell, Table, Tone};
pub use text::{Json, payload, visible, word};
pub use time::{Style, optional_span, span};
