//! Operations: what callers ask the owners of shards for, and what these answer.

use forebay_store::{OperationKind, OperationPart, OperationRow};
use forebay_types::{
    ItemAttributes, ItemId, Refusal, Seq, ShardId, Timestamp,
    filter::{Field, FieldValue, Filter, Kind},
};

use super::reason;

/// The answer of one shard to an order.
pub type OrderResult = (ShardId, Result<OperationRow, Refusal>);

/// Parts of operations, in the shards of this node that were looked at.
#[derive(Debug, Clone, Default)]
pub struct OperationsSnapshot {
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
    /// Of how many that were looked at. `None`: that is not known.
    pub scanned: Option<u64>,
    /// Some of those that were counted.
    pub samples: Vec<Seq>,
    /// All were counted. If not, there was no time for it.
    pub exact: bool,
}

/// Items of an operation's page in a batch, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OperationItems {
    /// Items that were changed.
    pub changed: u64,
    /// Items that did not fit any more.
    pub skipped: u64,
    /// Items that could not be changed.
    pub failed: u64,
}

/// Whether an operation changes items of which nothing but their places is known: it removes all there are.
pub(crate) fn takes_unreadable(kind: OperationKind, filter: &Filter) -> bool {
    let removes = matches!(kind, OperationKind::Purge | OperationKind::Cancel | OperationKind::DeleteDead);
    removes && *filter == Filter::default()
}

/// Fields of the filter of an operation of a kind.
pub fn filter_fields(kind: OperationKind) -> &'static [Field] {
    const FIELDS: &[Field] = &[
        ("age", Kind::Span),
        ("priority", Kind::Number),
        ("attempt", Kind::Number),
        ("redrives", Kind::Number),
        ("item", Kind::Text),
        ("reason", Kind::Text),
        ("group", Kind::Text),
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
        // Only dead letters have a reason, and so a group.
        OperationKind::DeleteDead | OperationKind::Redrive | OperationKind::Cancel => FIELDS,
    }
}

/// The facts of an item that a filter may use.
pub(crate) struct Facts<'a> {
    /// The item.
    pub id: ItemId,
    /// Its priority.
    pub priority: i32,
    /// Its other attributes.
    pub attributes: &'a ItemAttributes,
    /// How it died, and the text of the last nack, if it is a dead letter.
    pub death: Option<(&'a str, &'a str)>,
}

impl<'a> Facts<'a> {
    /// Its value in a field of a filter.
    pub fn held(&self, field: &str, now: Timestamp) -> FieldValue<'a> {
        match field {
            "item" => FieldValue::Text(self.id.to_string().into()),
            "reason" => self.death.map_or(FieldValue::Nothing, |(_, reason)| FieldValue::Text(reason.into())),
            "group" => self.death.map_or(FieldValue::Nothing, |(cause, reason)| {
                FieldValue::Text(reason::fingerprint(&reason::of_death(cause, reason)).into())
            }),
            field => held(field, now, self.attributes, self.priority),
        }
    }
}

/// The value of an item in a field that the filter of each state has.
pub(super) fn held(
    field: &str,
    now: Timestamp,
    attributes: &ItemAttributes,
    priority: i32,
) -> FieldValue<'static> {
    match field {
        "age" => FieldValue::Number((now.as_micros() - attributes.enqueued_at.as_micros()).max(0)),
        "priority" => FieldValue::Number(priority.into()),
        "attempt" => FieldValue::Number(attributes.deliveries.into()),
        "redrives" => FieldValue::Number(attributes.redrives.into()),
        _ => FieldValue::Nothing,
    }
}
