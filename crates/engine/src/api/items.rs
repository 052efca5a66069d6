//! ListItems and GetItem: items of the shards that this node owns, as operators look at them.

use forebay_store::{OperationKind, StoredItem};
use forebay_types::{
    ItemAttributes, ItemId, ShardId, Timestamp, TopicName,
    filter::{Field, FieldValue},
};

use super::{filter_fields, operations::held};

/// A page of a topic's items is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemsCall {
    /// The topic.
    pub name: TopicName,
    /// Which of its items.
    pub state: ItemState,
    /// Go on behind this position.
    pub after: Option<ItemPosition>,
    /// At most so many.
    pub limit: usize,
    /// At most so many bytes of each payload.
    pub payload_max: usize,
    /// Only those that pass it; see [`list_fields`]. Empty: all.
    pub filter: String,
    /// By which ages are counted.
    pub now: Timestamp,
}

/// Fields of the filter of a list of items in a state: those of an operation on them.
pub fn list_fields(state: ItemState) -> &'static [Field] {
    filter_fields(match state {
        ItemState::Dead => OperationKind::Redrive,
        ItemState::Leased => OperationKind::ResetLeases,
        ItemState::Ready | ItemState::Scheduled => OperationKind::Purge,
    })
}

/// Where an item is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState {
    /// It could be leased.
    Ready,
    /// It is leased.
    Leased,
    /// It waits for its time.
    Scheduled,
    /// It is a dead letter.
    Dead,
}

/// The position of an item in a list of one state, over all shards. Ready and scheduled ones: priority and
/// time. Leased ones: the end of the lease. Dead letters: the time of the death, the latest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemPosition {
    /// The first key of the order.
    pub first: i64,
    /// The second key of the order.
    pub second: i64,
    /// Breaks ties.
    pub shard: ShardId,
    /// Then. Of dead letters the greater number comes first, so it is turned round.
    pub seq: u64,
}

/// A page of items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ItemsPage {
    /// In order.
    pub items: Vec<ItemSnapshot>,
    /// All up to this position are listed. `None`: there are no more.
    pub through: Option<ItemPosition>,
    /// The shards that were looked at.
    pub shards: Vec<ShardId>,
    /// How many were looked at.
    pub scanned: usize,
}

/// An item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemSnapshot {
    /// Its id.
    pub id: ItemId,
    /// Its place in the list.
    pub position: ItemPosition,
    /// The item as it is stored.
    pub stored: StoredItem,
    /// Its lease, if it is leased.
    pub lease: Option<LeaseSnapshot>,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSnapshot {
    /// The consumer that has the item. May be empty.
    pub consumer: String,
    /// When the delivery began.
    pub leased_at: Timestamp,
    /// When the lease ends.
    pub ends_at: Timestamp,
    /// The number of the delivery, from 1.
    pub delivery: u32,
    /// The item's priority.
    pub priority: i32,
    /// The item's other attributes when it was leased.
    pub attributes: ItemAttributes,
}

impl LeaseSnapshot {
    /// Its value in a field of a filter.
    pub(crate) fn held(&self, field: &str, now: Timestamp) -> FieldValue<'_> {
        match field {
            "consumer" => FieldValue::Text((&self.consumer).into()),
            field => held(field, now, &self.attributes, self.priority),
        }
    }
}

/// An item that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemLookup {
    /// This one.
    Item(Box<ItemSnapshot>),
    /// The shard does not have it.
    Gone,
    /// This node does not own the shard, or could not look.
    NotLooked,
}
