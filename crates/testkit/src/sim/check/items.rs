//! The history of every item, from the shards' logs.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use forebay_store::{ItemRow, LeaseEntry};
use forebay_types::{DeliveryPolicy, ItemId, Key, State, Timestamp, TopicName};

use super::record::ShardLog;
use crate::{
    fake::{Change, Moment},
    sim::payload::tag_of,
};

/// Where an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// Not stored.
    Absent,
    /// In the delivery order, leased or not.
    Ready,
    /// Scheduled.
    Scheduled,
    /// Among the dead letters.
    Dead,
}

/// Changes of an item by one batch, and where the item was afterwards.
#[derive(Debug, Clone)]
pub struct Phase {
    /// When the engine asked for the batch.
    pub asked: Moment,
    /// When the batch took effect.
    pub done: Moment,
    /// Which process wrote it.
    pub process: usize,
    /// Its changes of the item.
    pub changes: Vec<Change>,
    /// Where the item was afterwards.
    pub location: Location,
    /// Its open lease.
    pub lease: Option<LeaseEntry>,
    /// Its position in the delivery order.
    pub key: Key,
    /// Its metadata.
    pub metadata: Bytes,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// An operation released leases in the batch.
    pub resets: bool,
    /// The shard's time, as the batch recorded it.
    pub time: Timestamp,
    /// The epoch of the owner that wrote the batch.
    pub epoch: u64,
}

/// An item that was stored.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// Its topic.
    pub topic: Option<TopicName>,
    /// The number in its payload, if that is intact.
    pub tag: Option<u64>,
    /// Whether it needs acks.
    pub policy: DeliveryPolicy,
    /// When it was to expire as it was enqueued.
    pub expires_at: Option<Timestamp>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// How many deliveries may fail.
    pub max_attempts: u32,
    /// Its history, in order.
    pub phases: Vec<Phase>,
}

/// One delivery, from the log.
#[derive(Debug, Clone)]
pub struct Lease {
    /// The phase in which it began.
    pub opened: usize,
    /// The phase in which it ended.
    pub closed: Option<usize>,
    /// As it began.
    pub entry: LeaseEntry,
}

/// Every item that was ever stored.
#[derive(Debug)]
pub struct Items {
    /// By id.
    pub by_id: BTreeMap<ItemId, Item>,
    /// Deliveries by item and nonce.
    pub leases: HashMap<(ItemId, u64), Lease>,
    /// Items by the number in their payload.
    pub by_tag: HashMap<u64, Vec<ItemId>>,
}

impl Items {
    /// Reads the logs.
    pub fn new(shards: &[ShardLog]) -> Self {
        let mut items = Self { by_id: BTreeMap::new(), leases: HashMap::new(), by_tag: HashMap::new() };
        for shard in shards {
            let mut topics = HashMap::new();
            for batch in &shard.log {
                topics.extend(batch.topics.iter().map(|topic| (topic.id, topic.name.clone())));
                let mut touched: BTreeMap<ItemId, Vec<Change>> = BTreeMap::new();
                for change in &batch.changes {
                    let id = ItemId { shard: shard.id, seq: seq_of(change) };
                    touched.entry(id).or_default().push(change.clone());
                }
                for (id, changes) in touched {
                    if let Some(Change::Inserted(row)) = changes.first() {
                        let item = items.by_id.entry(id).or_insert_with(|| Item {
                            id,
                            topic: topics.get(&row.topic).cloned(),
                            tag: tag_of(&row.body.payload),
                            policy: row.attributes.policy,
                            expires_at: row.attributes.expires_at,
                            enqueued_at: row.attributes.enqueued_at,
                            max_attempts: row.attributes.max_attempts,
                            phases: Vec::new(),
                        });
                        if item.phases.is_empty()
                            && let Some(tag) = item.tag
                        {
                            items.by_tag.entry(tag).or_default().push(id);
                        }
                    }
                    let Some(item) = items.by_id.get_mut(&id) else { continue };
                    let phase = next(item, batch, changes);
                    let at = item.phases.len();
                    for change in &phase.changes {
                        match change {
                            Change::Leased(entry) => {
                                let lease = Lease { opened: at, closed: None, entry: entry.clone() };
                                items.leases.insert((id, entry.nonce), lease);
                            }
                            Change::Closed(entry) => {
                                if let Some(lease) = items.leases.get_mut(&(id, entry.nonce)) {
                                    lease.closed = Some(at);
                                }
                            }
                            _ => {}
                        }
                    }
                    item.phases.push(phase);
                }
            }
        }
        items
    }
}

impl Item {
    /// The phases that were current at some moment between two events.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &Phase> {
        let first = self.phases.iter().rposition(|phase| phase.done.event <= from).unwrap_or(0);
        self.phases[first..].iter().take_while(move |phase| phase.done.event <= to)
    }

    /// When its row was inserted.
    pub fn inserted(&self) -> Option<Moment> {
        self.phases.first().map(|phase| phase.done)
    }
}

impl Phase {
    /// The item's row, if a caller gave it other values in the batch.
    pub fn updated(&self) -> Option<&ItemRow> {
        self.changes.iter().find_map(|change| match change {
            Change::Updated(row) => Some(row),
            _ => None,
        })
    }

    /// A caller or an operation gave it other values in the batch.
    pub fn has_other_values(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::Updated(_) | Change::Operated(_)))
    }

    /// Whether the batch removed the item.
    pub fn deleted(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::Deleted(_)))
    }
}

fn next(item: &Item, batch: &crate::fake::CommitRecord, changes: Vec<Change>) -> Phase {
    let before = item.phases.last();
    let mut phase = Phase {
        asked: batch.asked,
        done: batch.done,
        process: batch.process,
        changes: Vec::new(),
        location: before.map_or(Location::Absent, |phase| phase.location),
        lease: before.and_then(|phase| phase.lease.clone()),
        key: before.map_or(Key::MIN, |phase| phase.key),
        metadata: before.map(|phase| phase.metadata.clone()).unwrap_or_default(),
        expires_at: before.and_then(|phase| phase.expires_at),
        resets: batch.resets,
        time: batch.time,
        epoch: batch.epoch,
    };
    let of = |state| if state == State::Ready { Location::Ready } else { Location::Scheduled };
    for change in &changes {
        match change {
            Change::Inserted(row) => {
                (phase.location, phase.key) = (of(row.state), row.key);
                phase.expires_at = row.attributes.expires_at;
                phase.metadata.clone_from(&row.body.metadata);
            }
            Change::Redriven(row) => {
                (phase.location, phase.key) = (of(row.state), row.key);
                phase.expires_at = row.attributes.expires_at;
            }
            Change::Updated(row) | Change::Operated(row) => {
                (phase.location, phase.key) = (of(row.state), row.key);
                phase.expires_at = row.attributes.expires_at;
                phase.metadata.clone_from(&row.body.metadata);
            }
            Change::Leased(entry) | Change::Moved(entry) => phase.lease = Some(entry.clone()),
            Change::Closed(_) => phase.lease = None,
            Change::Promoted(_) => phase.location = Location::Ready,
            Change::PutOff(_, to) => phase.key.rank = to.as_micros(),
            Change::Requeued(requeue) => {
                (phase.location, phase.key.rank) = (of(requeue.state), requeue.rank);
                replace(&mut phase.metadata, requeue.metadata.as_deref());
            }
            Change::DeadLettered(letter) => {
                phase.location = Location::Dead;
                replace(&mut phase.metadata, letter.metadata.as_deref());
            }
            Change::Deleted(_)
            | Change::DeadLetterDeleted(_)
            | Change::Purged(_)
            | Change::DeadLetterPurged(_)
            | Change::Cancelled(_)
            | Change::DeadLetterCancelled(_) => phase.location = Location::Absent,
        }
    }
    phase.changes = changes;
    phase
}

/// New metadata, if a nack sent some.
fn replace(metadata: &mut Bytes, new: Option<&[u8]>) {
    if let Some(new) = new {
        *metadata = Bytes::copy_from_slice(new);
    }
}

fn seq_of(change: &Change) -> forebay_types::Seq {
    match change {
        Change::Inserted(row)
        | Change::Deleted(row)
        | Change::Purged(row)
        | Change::Cancelled(row)
        | Change::Redriven(row)
        | Change::Updated(row)
        | Change::Operated(row) => row.key.seq,
        Change::DeadLetterPurged(seq) | Change::DeadLetterCancelled(seq) => *seq,
        Change::Leased(entry) | Change::Moved(entry) | Change::Closed(entry) => entry.seq,
        Change::Promoted(seq) | Change::PutOff(seq, _) => *seq,
        Change::Requeued(requeue) => requeue.seq,
        Change::DeadLettered(letter) | Change::DeadLetterDeleted(letter) => letter.seq,
    }
}
