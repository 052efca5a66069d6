//! Items as operators see them.

use bytes::Bytes;
use forebay_types::{Failure, Headers, ItemAttributes, Key, Seq, Timestamp, TopicId, TopicName};

/// An item with all that is stored of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredItem {
    /// Its topic.
    pub topic: TopicName,
    /// The topic's number in its shard.
    pub topic_id: TopicId,
    /// Its position. The rank of a dead letter is the time of its death.
    pub key: Key,
    /// Its attributes.
    pub attributes: ItemAttributes,
    /// Its headers.
    pub headers: Headers,
    /// Its metadata.
    pub metadata: Bytes,
    /// Its payload, perhaps cut.
    pub payload: Bytes,
    /// Bytes of the whole payload.
    pub payload_size: u32,
    /// Where it is stored.
    pub state: StoredState,
    /// Its last failed deliveries, the latest first, at most [`Failure::KEPT`].
    pub last_failures: Vec<Failure>,
    /// Why some of what is stored of it can't be read. Attributes, headers and failures are unknown then.
    pub unreadable: Option<String>,
}

/// Where an item is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredState {
    /// In the delivery order. It may be leased: only the engine knows.
    Ready,
    /// It waits for its time.
    Scheduled,
    /// Among the dead letters.
    Dead(Death),
}

/// A dead letter, as those see it who group many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeathRow {
    /// When it died.
    pub died_at: Timestamp,
    /// The former item.
    pub seq: Seq,
    /// `nacked`, `lease ended`, `dead-lettered` or `expired while failing`.
    pub cause: String,
    /// The beginning of the text of the last nack. May be empty.
    pub last_error: String,
}

/// How an item became a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// `nacked`, `lease ended`, `dead-lettered` or `expired while failing`.
    pub reason: String,
    /// The text of the last nack. May be empty.
    pub last_error: String,
    /// When it died.
    pub died_at: Timestamp,
    /// When it is deleted. [`Timestamp::MAX`]: never.
    pub kept_until: Timestamp,
}
