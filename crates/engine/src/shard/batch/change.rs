//! Changes of single items in the batch. Each item is looked at again: what a commit changed since it was
//! read is read anew.

use forebay_types::{ItemId, Reason, Receipt, Refusal};

use super::{builder::BatchBuilder, operation, settle, update};
use crate::{
    api::{ItemChange, ItemState},
    planted::{Bug, on},
    shard::{
        commit::{
            in_flight::{OperationEffect, PlannedAction, PlannedChange},
            row_costs::RowKind,
        },
        work::{ChangeRequest, FoundItem, OperationItem, Place, SettleKind, SettleRequest},
    },
};

/// How much of the batch the changes that wait want: a quarter at most.
pub(super) fn wanted(builder: &BatchBuilder<'_>) -> usize {
    let all = builder.shard.intake.changes.rows() * builder.prices.of(RowKind::Change);
    all.min((builder.rows_max / 4).max(1))
}

/// Adds changes that wait, until they have cost so much.
pub(super) fn add_changes(builder: &mut BatchBuilder<'_>, share: usize) {
    // Work that had the room may not have used it.
    let share = if builder.rows == 0 { share.max(1) } else { share };
    if builder.is_bisecting() && builder.rows > 0 {
        return;
    }
    let most = builder.spent + share;
    let mut again = Vec::new();
    while builder.spent < most {
        let Some((request, found)) = builder.shard.intake.changes.next() else { break };
        let (seq, shard) = (request.seq, &builder.shard);
        let is_moving = builder.claims.contains(seq) || shard.contents.reserved.contains(&seq);
        let is_past = shard.intake.changes.is_invalidated(seq) && !on(Bug::ChangeOfThePast);
        if is_moving || is_past {
            again.push(request);
        } else {
            add(builder, request, found);
        }
    }
    again.into_iter().rev().for_each(|request| builder.shard.intake.changes.again(request));
}

fn add(builder: &mut BatchBuilder<'_>, request: ChangeRequest, found: Option<FoundItem>) {
    // Nobody learns of an item of another tenant.
    let found = found.filter(|found| found.namespace == request.namespace);
    let Some(found) = found.filter(|found| !is_past_update(builder, &request, &found.item)) else {
        let id = ItemId { shard: builder.shard.id, seq: request.seq };
        let refusal = Refusal::new(Reason::ItemNotFound, format!("there is no item {id}"));
        return builder.not_changed.push((request, Err(refusal)));
    };
    match request.change.clone() {
        ItemChange::Cancel => cancel(builder, request, &found),
        ItemChange::Update(wanted) => update::add(builder, request, found, wanted),
    }
}

/// Whether the item has expired and waits for its sweep alone: an update would bring it back.
fn is_past_update(builder: &BatchBuilder<'_>, request: &ChangeRequest, item: &OperationItem) -> bool {
    request.change != ItemChange::Cancel
        && !matches!(item.place, Place::Dead { .. })
        && !builder.shard.is_leased(request.seq)
        && item.attributes.expires_at.is_some_and(|end| end <= builder.moment.now)
}

/// The item is removed, wherever it is.
fn cancel(builder: &mut BatchBuilder<'_>, request: ChangeRequest, found: &FoundItem) {
    let (item, seq) = (&found.item, request.seq);
    let leased = builder.shard.contents.leases.get(seq).map(|lease| (lease.delivery(), lease.nonce));
    let state = state_of(&item.place, leased.is_some());
    if request.dry_run {
        return builder.not_changed.push((request, Ok(state)));
    }
    if leased.is_none() {
        builder.spend(RowKind::Deletion, 1);
    }
    builder.free_key(seq, item.attributes.enqueued_at);
    let effect = match (&item.place, leased) {
        (_, Some((delivery, nonce))) => {
            let receipt = Receipt { item: ItemId { shard: builder.shard.id, seq }, delivery, nonce };
            let (namespace, kind) = (request.namespace.clone(), SettleKind::Cancel);
            settle::add(builder, SettleRequest { namespace, receipt, kind, slot: None });
            None
        }
        (Place::Dead { .. }, None) => {
            builder.claims.insert(seq);
            builder.batch.dead_letter_cancels.push(seq);
            builder.remove_dead_letter(item.topic, &found.namespace);
            Some(OperationEffect::DeadLetterGone(seq))
        }
        (place, None) => {
            let is_scheduled = matches!(place, Place::Scheduled);
            if !on(Bug::CancelForgotten) {
                builder.batch.cancels.push(seq);
            }
            Some(operation::take_out(builder, item, is_scheduled))
        }
    };
    builder.planned.push(PlannedAction::Change(Box::new(PlannedChange { request, state, effect })));
}

/// Where an item is in its life.
fn state_of(place: &Place, is_leased: bool) -> ItemState {
    match place {
        _ if is_leased => ItemState::Leased,
        Place::Scheduled => ItemState::Scheduled,
        Place::Ready | Place::Leased { .. } => ItemState::Ready,
        Place::Dead { .. } => ItemState::Dead,
    }
}
