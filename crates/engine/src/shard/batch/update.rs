//! UpdateItem in the batch: an item that waits gets other values, and its rows of times follow.

use bytes::Bytes;
use forebay_store::{DueKey, NewAttributes, OperationUpdate, Sweep, UpdatedRow};
use forebay_types::{ItemAttributes, ItemId, Key, Reason, Refusal, Schedule, State, Timestamp, Waits};

use super::builder::BatchBuilder;
use crate::{
    api::{ItemState, ItemUpdate},
    planted::{Bug, on},
    shard::{
        commit::{
            disk_room::{Need, disk_full},
            in_flight::{OperationEffect, PlannedAction, PlannedChange, UpdatedItem},
            row_costs::RowKind,
        },
        work::{ChangeRequest, FoundItem, OperationItem, Place, ReadyItem},
    },
};

/// Where an item is after an update, and when it expires.
pub(super) struct Target {
    /// Its place in the delivery order.
    key: Key,
    /// Ready, or scheduled at the time given by its rank.
    state: State,
    /// When it expires.
    expires_at: Option<Timestamp>,
}

/// Adds an update of an item, unless it can't be made.
pub(super) fn add(
    builder: &mut BatchBuilder<'_>,
    request: ChangeRequest,
    found: FoundItem,
    wanted: ItemUpdate,
) {
    let target = match refused(builder, &request, &found) {
        None => target(&found.item, &wanted, builder.moment.now),
        Some(refusal) => Err(refusal),
    };
    let target = match target {
        Ok(target) => target,
        Err(refusal) => return builder.not_changed.push((request, Err(refusal))),
    };
    let state = match target.state {
        State::Ready => ItemState::Ready,
        State::Scheduled => ItemState::Scheduled,
    };
    if request.dry_run {
        return builder.not_changed.push((request, Ok(state)));
    }
    builder.spend(RowKind::Change, 1);
    let effect = Some(write(builder, &found.item, &wanted, &target, None));
    builder.planned.push(PlannedAction::Change(Box::new(PlannedChange { request, state, effect })));
}

/// The values that an operation gives items.
pub(super) fn of_operation(update: &OperationUpdate) -> ItemUpdate {
    let OperationUpdate { priority, due, metadata, ttl } = update;
    let metadata = metadata.as_deref().map(Bytes::copy_from_slice);
    ItemUpdate { priority: *priority, schedule: *due, metadata, ttl: *ttl }
}

/// Why the item can't be changed, whatever it is to be.
fn refused(builder: &BatchBuilder<'_>, request: &ChangeRequest, found: &FoundItem) -> Option<Refusal> {
    let id = ItemId { shard: builder.shard.id, seq: request.seq };
    if builder.shard.is_leased(request.seq) {
        let message = format!("item {id} is leased: its consumer decides what becomes of it");
        return Some(Refusal::new(Reason::ItemLeased, message));
    }
    if matches!(found.item.place, Place::Dead { .. }) {
        let message = format!("item {id} is a dead letter: redrive it first");
        return Some(Refusal::new(Reason::ItemDead, message));
    }
    if found.item.unreadable {
        let message = format!("what is stored of item {id} can't be read, so it can only be removed");
        return Some(Refusal::new(Reason::ItemUnreadable, message));
    }
    let has_room = builder.allowed >= Need::Rows || request.dry_run;
    (!has_room).then(|| disk_full(builder.shard.id))
}

/// Where the item is to be. It must be due before it expires, where one of the two times is given.
pub(super) fn target(item: &OperationItem, wanted: &ItemUpdate, now: Timestamp) -> Result<Target, Refusal> {
    let was_scheduled = matches!(item.place, Place::Scheduled);
    let due = wanted.schedule.map(|schedule| match schedule {
        Schedule::Now => now,
        Schedule::Delay(delay) => now.plus(delay),
        Schedule::After(at) => at,
    });
    let (state, rank) = match due {
        Some(due) if due > now => (State::Scheduled, due.as_micros()),
        Some(_) if was_scheduled => (State::Ready, now.as_micros()),
        None if was_scheduled => (State::Scheduled, item.key.rank),
        _ => (State::Ready, item.key.rank),
    };
    let expires_at = wanted.ttl.map(|ttl| now.plus(ttl)).or(item.attributes.expires_at);
    let never_due = state == State::Scheduled && expires_at.is_some_and(|end| end.as_micros() <= rank);
    match wanted.schedule {
        Some(Schedule::Delay(_)) if never_due => {
            return Err(Refusal::field("delay", "must be shorter than the time until the item expires"));
        }
        Some(_) if never_due => {
            return Err(Refusal::field("deliver_after", "must be before the item expires"));
        }
        None if never_due && wanted.ttl.is_some() => {
            return Err(Refusal::field("ttl", "must be longer than the time until the item is due"));
        }
        _ => {}
    }
    let priority = wanted.priority.unwrap_or(item.key.priority);
    Ok(Target { key: Key { priority, rank, ..item.key }, state, expires_at })
}

/// Writes the rows: the item's own, and those of its times that change. `mark`: of the operation that does
/// it.
pub(super) fn write(
    builder: &mut BatchBuilder<'_>,
    item: &OperationItem,
    wanted: &ItemUpdate,
    target: &Target,
    mark: Option<u32>,
) -> OperationEffect {
    let (topic, before, bytes) = (item.topic, item.key, item.bytes);
    let (seq, was_scheduled) = (before.seq, matches!(item.place, Place::Scheduled));
    let is_scheduled = target.state == State::Scheduled;
    builder.claims.insert(seq);
    let stays = was_scheduled && is_scheduled && before.rank == target.key.rank;
    if was_scheduled && !stays && !on(Bug::UpdateKeepsSchedule) {
        builder.batch.schedule_deletes.push(DueKey { at: Timestamp::from_micros(before.rank), seq });
    }
    if is_scheduled && !stays {
        builder.added.add(Sweep::Due, Timestamp::from_micros(target.key.rank));
    }
    let moved = i64::from(is_scheduled) - i64::from(was_scheduled);
    builder.count(topic, -moved, moved, 0);
    let updated_by = mark.unwrap_or(item.attributes.updated_by);
    let waits = match (wanted.schedule, item.attributes.waits, item.attributes.deliveries) {
        // It goes without saying.
        (Some(Schedule::Delay(_)), Waits::Unsaid, 1..) | (Some(Schedule::After(_)), Waits::Unsaid, 0) => {
            Waits::Unsaid
        }
        (Some(Schedule::Delay(_)), ..) => Waits::Span,
        (Some(Schedule::After(_)), ..) => Waits::Point,
        (Some(Schedule::Now) | None, waits, _) => waits,
    };
    let attributes = ItemAttributes { expires_at: target.expires_at, updated_by, waits, ..item.attributes };
    let expires = wanted.ttl.is_some();
    if expires {
        if let Some(at) = item.attributes.expires_at {
            builder.batch.expiry_deletes.push(DueKey { at, seq });
        }
        builder.adds_expiry(target.expires_at);
    }
    let rest = bytes.saturating_sub(item.metadata_bytes);
    let metadata = wanted.metadata.as_deref().map(<[u8]>::to_vec);
    let metadata_len = metadata.as_ref().map(|it| u32::try_from(it.len()).unwrap_or(u32::MAX));
    let bytes = rest.saturating_add(metadata_len.unwrap_or(item.metadata_bytes));
    builder.batch.updates.push(UpdatedRow {
        key: target.key,
        state: target.state,
        schedules: is_scheduled && !stays,
        metadata,
        attributes: (expires || mark.is_some() || waits != item.attributes.waits).then(|| NewAttributes {
            attributes,
            bytes: rest,
            headers: item.headers.clone(),
        }),
        expires,
        is_operated: mark.is_some(),
    });
    let windowed = builder.shard.contents.topics.with_window(topic, |window| window.remove(before)).flatten();
    let ready = (!is_scheduled).then_some((target.key, ReadyItem { attributes, bytes, body: None }));
    OperationEffect::Updated(Box::new(UpdatedItem { topic, before, windowed, ready }))
}
