//! Findings, and how their sentences speak of nodes, numbers and times.

use forebay_proto::{
    time::to_timestamp,
    v1::{self, BlockerCode},
};
use forebay_types::{ShardId, Timestamp};

/// Something that keeps items from being delivered, or that nothing does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundBlocker {
    /// Kind of the finding.
    pub code: BlockerCode,
    /// The same for people.
    pub sentence: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// Which node or consumer it is about. May be empty.
    pub by: String,
    /// In which shard.
    pub shard: Option<ShardId>,
    /// How many items.
    pub count: Option<u64>,
}

impl FoundBlocker {
    /// With its sentence alone.
    pub fn new(code: BlockerCode, sentence: String) -> Self {
        Self { code, sentence, since: None, until: None, by: String::new(), shard: None, count: None }
    }

    /// The message.
    pub fn message(self) -> v1::Blocker {
        let Self { code, sentence, since, until, by, shard, count } = self;
        v1::Blocker {
            code: code.into(),
            sentence,
            since: since.map(to_timestamp),
            until: until.map(to_timestamp),
            by,
            shard: shard.map(|id| id.0),
            count,
        }
    }
}

/// Number of items, in words of a sentence.
pub fn items(count: u64) -> String {
    match count {
        1 => "1 item".to_owned(),
        _ => format!("{count} items"),
    }
}

/// `is` or `are`, behind so many.
pub const fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// A node, inside a sentence.
pub fn node(name: &str) -> String {
    if name.is_empty() { "this node".to_owned() } else { format!("node {name}") }
}

/// A consumer, inside a sentence.
pub fn consumer(name: &str) -> String {
    if name.is_empty() { "a consumer without a name".to_owned() } else { format!("consumer {name}") }
}
