//! Orders that wait for an operation, and the reads that it asks the shard's connections for.

use forebay_store::{
    DeadRow, OperationCursor, OperationId, OperationOrder, StoredItem, StoredState, WalkedRow,
};
use forebay_types::{
    Body, Headers, ItemAttributes, ItemId, Key, Namespace, Seq, ShardId, Timestamp, TopicId, TopicName,
    filter::FieldValue,
};

use crate::api::Facts;

/// An order of a caller to the shard's part of an operation.
#[derive(Debug, Clone)]
pub(crate) struct OrderRequest {
    /// The call.
    pub call: u64,
    /// The order.
    pub order: OperationOrder,
}

/// The read that an operation needs.
pub(crate) struct OperationRead {
    /// Where.
    pub walk: Walk,
    /// At most so many items.
    pub limit: usize,
}

/// Where an operation looks.
pub(crate) enum Walk {
    /// Among the items of a topic.
    Items {
        /// The topic.
        topic: TopicId,
        /// Scheduled ones. Otherwise ready ones.
        is_scheduled: bool,
        /// Behind this key.
        after: Key,
        /// Numbers up to this one.
        as_of: Seq,
        /// The headers are kept: the items are to be written anew.
        keeps_headers: bool,
    },
    /// Among the dead letters of a topic.
    Dead {
        /// The topic.
        name: TopicName,
        /// Behind this topic, death and item.
        after: (TopicId, Timestamp, Seq),
        /// Deaths up to this time.
        until: Timestamp,
    },
}

/// A page that an operation read.
#[derive(Debug)]
pub(crate) struct OperationPage {
    /// The operation.
    pub id: OperationId,
    /// The items that were read.
    pub items: Vec<OperationItem>,
    /// Where it continues. `None`: nothing is behind the page.
    pub next: Option<OperationCursor>,
}

/// An item as an operation read it.
#[derive(Debug)]
pub(crate) struct OperationItem {
    /// Its topic.
    pub topic: TopicId,
    /// Its place in the delivery order.
    pub key: Key,
    /// Its attributes beside its place and its body.
    pub attributes: ItemAttributes,
    /// Bytes of its body.
    pub bytes: u32,
    /// Bytes of its metadata among them. Only of an item that waits, as its headers.
    pub metadata_bytes: u32,
    /// Its headers, if it is to be written anew with them.
    pub headers: Headers,
    /// Where it was.
    pub place: Place,
    /// Its stored row can't be read: its attributes and headers are unknown.
    pub unreadable: bool,
}

/// An item that was looked for by its id.
#[derive(Debug)]
pub(crate) struct FoundItem {
    /// The item's tenant.
    pub namespace: Namespace,
    /// The item.
    pub item: OperationItem,
}

impl From<StoredItem> for FoundItem {
    fn from(stored: StoredItem) -> Self {
        let StoredItem { topic, topic_id, key, attributes, headers, metadata, .. } = stored;
        let len = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let metadata_bytes = len(metadata.len());
        let body = Body { metadata, headers, ..Body::default() };
        let bytes = stored.payload_size.saturating_add(len(body.bytes()));
        let place = match stored.state {
            StoredState::Ready => Place::Ready,
            StoredState::Scheduled => Place::Scheduled,
            StoredState::Dead(death) => {
                let (died_at, cause, last_error) = (death.died_at, death.reason, death.last_error);
                Place::Dead { died_at, cause, last_error, packed: Vec::new() }
            }
        };
        let headers = body.headers;
        let unreadable = stored.unreadable.is_some();
        let item = OperationItem {
            topic: topic_id,
            key,
            attributes,
            bytes,
            metadata_bytes,
            headers,
            place,
            unreadable,
        };
        Self { namespace: topic.namespace, item }
    }
}

/// Where an item was when an operation read it.
#[derive(Debug)]
pub(crate) enum Place {
    /// It waited for its time.
    Scheduled,
    /// It was ready, or leased.
    Ready,
    /// It was leased.
    Leased {
        /// The number of the delivery.
        delivery: u32,
        /// When the lease ends.
        deadline: Timestamp,
        /// The consumer that has it. May be empty.
        consumer: String,
    },
    /// It was a dead letter.
    Dead {
        /// When it died.
        died_at: Timestamp,
        /// How it died.
        cause: String,
        /// The text of the last nack.
        last_error: String,
        /// Its attributes as they are stored.
        packed: Vec<u8>,
    },
}

impl OperationItem {
    /// An item in the delivery order.
    pub fn of_row(topic: TopicId, row: WalkedRow, place: Place, keeps_headers: bool) -> Self {
        let WalkedRow { item, headers, metadata_bytes } = row;
        let headers = if keeps_headers { headers } else { Headers::new() };
        Self {
            topic,
            key: item.key,
            attributes: item.attributes,
            bytes: item.bytes,
            metadata_bytes,
            headers,
            place,
            unreadable: item.unreadable,
        }
    }

    /// A dead letter.
    pub fn of_dead(row: DeadRow) -> Self {
        let DeadRow { topic, died_at, item, cause, last_error, packed } = row;
        let place = Place::Dead { died_at, cause, last_error, packed };
        Self {
            topic,
            key: item.key,
            attributes: item.attributes,
            bytes: item.bytes,
            metadata_bytes: 0,
            headers: Headers::new(),
            place,
            unreadable: item.unreadable,
        }
    }

    /// Where an operation continues behind it.
    pub fn cursor(&self) -> OperationCursor {
        match self.place {
            Place::Scheduled => OperationCursor::Scheduled(self.key),
            Place::Ready => OperationCursor::Ready(self.key),
            Place::Leased { deadline, .. } => OperationCursor::Leases(deadline, self.key.seq),
            Place::Dead { died_at, .. } => OperationCursor::Dead(self.topic, died_at, self.key.seq),
        }
    }

    /// Its value in a field of a filter. `shard`: where it is.
    pub fn held(&self, field: &str, shard: ShardId, now: Timestamp) -> FieldValue<'_> {
        let death = match &self.place {
            Place::Leased { consumer, .. } if field == "consumer" => {
                return FieldValue::Text(consumer.into());
            }
            Place::Dead { cause, last_error, .. } => Some((cause.as_str(), last_error.as_str())),
            _ => None,
        };
        let id = ItemId { shard, seq: self.key.seq };
        Facts { id, priority: self.key.priority, attributes: &self.attributes, death }.held(field, now)
    }
}
