//! Prints results: tables for people, JSON for programs.

mod access;
mod flags;
mod list;
mod messages;
mod namespaces;
mod one;
mod operations;
mod protobuf;
mod settings;
mod table;
mod text;
mod time;

pub use access::{audit_outcome, audit_record, token};
pub use flags::{Format, Look, Output, PayloadForm};
pub use flags::{note_incomplete, note_shards, note_uncounted};
pub use list::{Column, List, Row, print_json};
pub use messages::{
    active_topic, blocker, caller, cancelled, consumer, dead_group, delivery, enqueued, extended, history,
    item, item_state, node, pause, settled, shard, topic, topic_report,
};
pub use namespaces::{namespace, namespace_report};
pub use one::{One, print_one};
pub use operations::{kind_name, operation, started, state_name};
pub use protobuf::{from_json, to_json};
pub use settings::{put_namespace, put_topic, settings_difference};
pub use table::{Cell, Table, Tone};
pub use text::{Json, payload, visible};
pub use time::{Style, span};
