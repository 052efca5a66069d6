//! ListItems and GetItem.

use bytes::Bytes;
use forebay_engine::{
    Engine, ItemLookup, ItemPosition, ItemSnapshot, ItemState, ItemsCall, ItemsPage, LeaseSnapshot,
};
use forebay_proto::{peer, time::to_timestamp, v1};
use forebay_store::{Death, StoredItem, StoredState};
use forebay_types::{DeliveryPolicy, Failure, ItemId, Namespace, Refusal, ShardId, Timestamp, TopicName};

use super::{Look, Part, malformed, topics::topic_name};
use crate::history::History;

/// The most items of one look.
const ITEMS_MAX: usize = 1_000;
/// The most bytes of each payload.
const PAYLOAD_BYTES_MAX: usize = 256 << 10;
/// Bytes of a position.
const POSITION_BYTES: usize = 8 + 8 + 4 + 8;

impl Look for peer::ListItemsRequest {
    const NAME: &'static str = "ListItems";
    type Answer = v1::ListItemsResponse;

    fn caller(&self) -> Namespace {
        self.name.as_ref().map(|name| name.namespace.as_str()).unwrap_or_default().into()
    }

    async fn look(self, engine: &Engine, _: &History) -> Result<Part<Self::Answer>, Refusal> {
        let state = state(self.state()).ok_or_else(|| malformed("state"))?;
        let name = self.name.ok_or_else(|| malformed("topic"))?;
        let call = ItemsCall {
            name: TopicName::new(name.namespace, name.topic),
            state,
            after: self.after.map(from_wire),
            limit: (self.limit as usize).clamp(1, ITEMS_MAX),
            payload_max: (self.payload_max as usize).min(PAYLOAD_BYTES_MAX),
            filter: self.filter,
            now: Timestamp::from_micros(self.now),
        };
        let ItemsPage { items, through, shards, scanned } = engine.list_items(call).await?;
        let (positions, items) = items.into_iter().map(|it| (bytes_of(it.position), item(it))).unzip();
        let answer = Self::Answer { items, scanned: scanned as u64, ..Self::Answer::default() };
        let mut part = Part::new(answer, shards);
        part.rest.through = through.map(bytes_of).unwrap_or_default();
        part.rest.positions = positions;
        Ok(part)
    }
}

impl Look for v1::GetItemRequest {
    const NAME: &'static str = "GetItem";
    type Answer = v1::GetItemResponse;

    fn caller(&self) -> Namespace {
        self.namespace.as_str().into()
    }

    /// A shard that could be looked at is among the shards, though the item may not be there.
    async fn look(self, engine: &Engine, _: &History) -> Result<Part<Self::Answer>, Refusal> {
        let id: ItemId = self.item_id.parse().map_err(|_| malformed("item"))?;
        let payload_max = (self.max_payload_bytes as usize).min(PAYLOAD_BYTES_MAX);
        let (item, shards) = match engine.item(&self.caller(), id, payload_max).await? {
            ItemLookup::Item(found) => (Some(item(*found)), vec![id.shard]),
            ItemLookup::Gone => (None, vec![id.shard]),
            ItemLookup::NotLooked => (None, Vec::new()),
        };
        Ok(Part::new(Self::Answer { item }, shards))
    }
}

/// A call as a look.
pub fn request(call: &ItemsCall) -> peer::ListItemsRequest {
    peer::ListItemsRequest {
        name: Some(topic_name(&call.name)),
        state: state_message(call.state).into(),
        after: call.after.map(to_wire),
        limit: u32::try_from(call.limit).unwrap_or(u32::MAX),
        payload_max: u32::try_from(call.payload_max).unwrap_or(u32::MAX),
        filter: call.filter.clone(),
        now: call.now.as_micros(),
    }
}

/// A state as a message.
pub const fn state_message(state: ItemState) -> v1::ItemState {
    match state {
        ItemState::Ready => v1::ItemState::Ready,
        ItemState::Leased => v1::ItemState::Leased,
        ItemState::Scheduled => v1::ItemState::Scheduled,
        ItemState::Dead => v1::ItemState::Dead,
    }
}

/// The state that a request names. `None`: it names none.
pub fn state(state: v1::ItemState) -> Option<ItemState> {
    Some(match state {
        v1::ItemState::Unspecified => return None,
        v1::ItemState::Ready => ItemState::Ready,
        v1::ItemState::Leased => ItemState::Leased,
        v1::ItemState::Scheduled => ItemState::Scheduled,
        v1::ItemState::Dead => ItemState::Dead,
    })
}

/// A position as a message.
pub fn to_wire(position: ItemPosition) -> peer::ItemPosition {
    let ItemPosition { first, second, shard, seq } = position;
    peer::ItemPosition { first, second, shard: shard.0, seq }
}

fn from_wire(position: peer::ItemPosition) -> ItemPosition {
    let peer::ItemPosition { first, second, shard, seq } = position;
    ItemPosition { first, second, shard: ShardId(shard), seq }
}

/// A position in pages and between nodes.
pub fn bytes_of(position: ItemPosition) -> Bytes {
    let ItemPosition { first, second, shard, seq } = position;
    let parts: [&[u8]; 4] =
        [&first.to_be_bytes(), &second.to_be_bytes(), &shard.0.to_be_bytes(), &seq.to_be_bytes()];
    parts.concat().into()
}

/// The position of such bytes. `None`: they are none.
pub fn position_of(bytes: &[u8]) -> Option<ItemPosition> {
    let bytes: [u8; POSITION_BYTES] = bytes.try_into().ok()?;
    let read = |at: usize| bytes[at..at + 8].try_into().map(i64::from_be_bytes).ok();
    let shard = bytes[16..20].try_into().map(u32::from_be_bytes).ok()?;
    let seq = read(20)?.cast_unsigned();
    Some(ItemPosition { first: read(0)?, second: read(8)?, shard: ShardId(shard), seq })
}

/// An item as callers see it.
fn item(seen: ItemSnapshot) -> v1::Item {
    let ItemSnapshot { id, stored, lease, .. } = seen;
    let StoredItem { topic, key, attributes, state, last_failures, .. } = stored;
    let StoredItem { headers, metadata, payload, payload_size, unreadable, .. } = stored;
    let (state, ready_at, death) = match state {
        StoredState::Ready if lease.is_some() => (v1::ItemState::Leased, Some(key.rank), None),
        StoredState::Ready => (v1::ItemState::Ready, Some(key.rank), None),
        StoredState::Scheduled => (v1::ItemState::Scheduled, Some(key.rank), None),
        StoredState::Dead(death) => (v1::ItemState::Dead, None, Some(death_of(death))),
    };
    let attempt = lease.as_ref().map_or(attributes.deliveries, |lease| lease.delivery);
    v1::Item {
        item_id: id.to_string(),
        namespace: topic.namespace.to_string(),
        topic: topic.topic.to_string(),
        state: state.into(),
        priority: key.priority,
        attempt,
        failures: attributes.failures,
        redrives: attributes.redrives.into(),
        max_attempts: attributes.max_attempts,
        enqueued_at: unreadable.is_none().then(|| to_timestamp(attributes.enqueued_at)),
        ready_at: ready_at.map(|rank| to_timestamp(Timestamp::from_micros(rank))),
        expires_at: attributes.expires_at.map(to_timestamp),
        at_most_once: attributes.policy == DeliveryPolicy::AtMostOnce,
        payload_cut: payload.len() < payload_size as usize,
        payload,
        payload_size: payload_size.into(),
        metadata,
        headers: headers.into_iter().collect(),
        lease: lease.map(lease_of),
        death,
        last_failures: last_failures.into_iter().map(failure_of).collect(),
        unreadable: unreadable.unwrap_or_default(),
    }
}

fn lease_of(lease: LeaseSnapshot) -> v1::ItemLease {
    v1::ItemLease {
        consumer: lease.consumer,
        ends_at: Some(to_timestamp(lease.ends_at)),
        leased_at: Some(to_timestamp(lease.leased_at)),
    }
}

fn failure_of(failure: Failure) -> v1::ItemFailure {
    let Failure { attempt, consumer, leased_at, ended_at, cause, reason } = failure;
    v1::ItemFailure {
        attempt,
        consumer,
        leased_at: Some(to_timestamp(leased_at)),
        ended_at: Some(to_timestamp(ended_at)),
        cause: cause.as_str().to_owned(),
        reason,
    }
}

fn death_of(death: Death) -> v1::ItemDeath {
    v1::ItemDeath {
        cause: death.reason,
        reason: death.last_error,
        died_at: Some(to_timestamp(death.died_at)),
        kept_until: (death.kept_until < Timestamp::MAX).then(|| to_timestamp(death.kept_until)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back() {
        for (first, seq) in [(i64::MIN, 0), (-5, 7), (i64::MAX, u64::MAX)] {
            let position = ItemPosition { first, second: -first.saturating_abs(), shard: ShardId(9), seq };
            assert_eq!(position_of(&bytes_of(position)).unwrap(), position);
        }
        assert!(position_of(&[1; POSITION_BYTES - 1]).is_none());
    }
}
