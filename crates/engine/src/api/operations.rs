//! Operations: what callers ask the owners of shards for, and what these answer.

use forebay_store::{OperationKind, OperationPart, OperationRow};
use forebay_types::{
    ItemAttributes, Refusal, Seq, ShardId, Timestamp,
    filter::{Field, Held, Kind},
};

/// What one shard answers to an order.
pub type Ordered = (ShardId, Result<OperationRow, Refusal>);

/// Parts of operations, in the shards of this node that were looked at.
#[derive(Debug, Clone, Default)]
pub struct OperationsSeen {
    /// One of each shard and operation.
    pub parts: Vec<OperationPart>,
    /// The shards that were looked at.
    pub shards: Vec<ShardId>,
}

/// How many items of a shard an operation would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemCount {
    /// The shard.
    pub shard: ShardId,
    /// How many were counted.
    pub matched: u64,
    /// Some of them.
    pub samples: Vec<Seq>,
    /// All were counted. If not, there was no time for it.
    pub exact: bool,
}

/// Items of an operation's page in a batch, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OperationItems {
    /// Those that were changed.
    pub changed: u64,
    /// Those that did not fit any more.
    pub skipped: u64,
    /// Those that could not be changed.
    pub failed: u64,
}

/// Fields of the filter of an operation of a kind.
pub fn filter_fields(kind: OperationKind) -> &'static [Field] {
    const FIELDS: &[Field] = &[
        ("age", Kind::Span),
        ("priority", Kind::Number),
        ("attempt", Kind::Number),
        ("redrives", Kind::Number),
        ("reason", Kind::Text),
    ];
    // The log of leases does not have how often an item was redriven.
    const OF_LEASES: &[Field] = &[
        ("age", Kind::Span),
        ("priority", Kind::Number),
        ("attempt", Kind::Number),
        ("consumer", Kind::Text),
    ];
    match kind {
        OperationKind::ResetLeases => OF_LEASES,
        OperationKind::Purge | OperationKind::Update => &FIELDS[..4],
        // Only dead letters have a reason.
        OperationKind::DeleteDead | OperationKind::Redrive | OperationKind::Cancel => FIELDS,
    }
}

/// What an item has in a field of a filter. `reason`: of a dead letter.
pub(crate) fn held<'a>(
    field: &str,
    now: Timestamp,
    attributes: &ItemAttributes,
    priority: i32,
    reason: Option<&'a str>,
) -> Held<'a> {
    match field {
        "age" => Held::Number((now.as_micros() - attributes.enqueued_at.as_micros()).max(0)),
        "priority" => Held::Number(priority.into()),
        "attempt" => Held::Number(attributes.deliveries.into()),
        "redrives" => Held::Number(attributes.redrives.into()),
        "reason" => reason.map_or(Held::Nothing, Held::Text),
        _ => Held::Nothing,
    }
}
