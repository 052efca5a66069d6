//! Items, as operators look at them.

use forebay_engine::{ItemFound, ItemPosition, ItemSeen, ItemState, ItemsCall, ItemsPage, LeaseSeen};
use forebay_proto::{peer, v1};
use forebay_store::{Death, StoredItem, StoredState};
use forebay_types::{DeliveryPolicy, Failure, ShardId, Timestamp, TopicName};

use super::topics::topic_name;
use crate::grpc::to_timestamp;

/// A page of this node's items, as other nodes are told.
pub fn items_response(page: ItemsPage) -> peer::ListItemsResponse {
    let ItemsPage { items, through, shards, scanned } = page;
    let listed =
        |it: ItemSeen| peer::ListedItem { position: Some(to_wire(it.position)), item: Some(item(it)) };
    peer::ListItemsResponse {
        items: items.into_iter().map(listed).collect(),
        through: through.map(to_wire),
        shards: shards.into_iter().map(|id| id.0).collect(),
        scanned: scanned as u64,
        filtered: true,
    }
}

/// A request to another node.
pub fn items_request(call: &ItemsCall) -> peer::ListItemsRequest {
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

/// A request of another node. `None`: it is not one.
pub fn items_call(request: peer::ListItemsRequest) -> Option<ItemsCall> {
    let state = state(request.state())?;
    let name = request.name?;
    Some(ItemsCall {
        name: TopicName::new(name.namespace, name.topic),
        state,
        after: request.after.map(from_wire),
        limit: request.limit as usize,
        payload_max: request.payload_max as usize,
        filter: request.filter,
        now: Timestamp::from_micros(request.now),
    })
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

/// What came of a look for an item, as other nodes are told.
pub fn item_response(found: ItemFound) -> peer::GetItemResponse {
    match found {
        ItemFound::Item(found) => peer::GetItemResponse { looked: true, item: Some(item(*found)) },
        ItemFound::Gone => peer::GetItemResponse { looked: true, item: None },
        ItemFound::NotLooked => peer::GetItemResponse { looked: false, item: None },
    }
}

/// A position as a message.
fn to_wire(position: ItemPosition) -> peer::ItemPosition {
    let ItemPosition { first, second, shard, seq } = position;
    peer::ItemPosition { first, second, shard: shard.0, seq }
}

/// The position of a message.
pub fn from_wire(position: peer::ItemPosition) -> ItemPosition {
    let peer::ItemPosition { first, second, shard, seq } = position;
    ItemPosition { first, second, shard: ShardId(shard), seq }
}

/// An item as callers see it.
fn item(seen: ItemSeen) -> v1::Item {
    let ItemSeen { id, stored, lease, .. } = seen;
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

fn lease_of(lease: LeaseSeen) -> v1::ItemLease {
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
