//! Deliveries that begin, and the lease log that holds them.

use forebay_store::{ItemRow, LeaseEntry};
use forebay_types::{ItemAttributes, Seq, State};
use rand::RngExt;

use super::builder::BatchBuilder;
use crate::{
    invariant::broken,
    shard::{
        commit::{
            disk_room::Need,
            in_flight::{LeaseOutcome, PlannedAction},
            row_costs::RowKind,
        },
        work::{ReservedItem, Restore, ShardLease, Turn},
    },
};

/// Adds leases that wait, until the batch costs so much. A poll's share is not cut: the first may be
/// longer.
pub(super) fn add_leases(builder: &mut BatchBuilder<'_>, most: usize) {
    if builder.allowed < Need::Rows {
        return;
    }
    let mut first = true;
    let price = builder.prices.of(RowKind::Lease);
    builder.shard.intake.leasing.begin_by_weight(builder.left(most) / price, builder.set);
    while builder.spent < most {
        let room = builder.left(most);
        let long = first && (!builder.is_bisecting() || builder.rows == 0);
        let fits = |part: &ShardLease| long || part.items.len() * price <= room;
        let Some(Turn { work: part, .. }) = builder.shard.intake.leasing.pop(fits) else { break };
        first = false;
        let leased: Vec<LeaseOutcome> =
            part.items.iter().map(|reserved| begin(builder, &part, reserved)).collect();
        if part.has_at_most_once() && !leased.iter().any(|leased| matches!(leased, LeaseOutcome::Consumed)) {
            builder.nothing_consumed.push(part.poll);
        }
        builder.rows += part.items.len();
        builder.planned.push(PlannedAction::Lease { part, leased });
    }
}

/// Begins one delivery.
pub(super) fn begin(
    builder: &mut BatchBuilder<'_>,
    part: &ShardLease,
    reserved: &ReservedItem,
) -> LeaseOutcome {
    let (now, item) = (builder.moment.now, &reserved.item);
    if item.is_expired(now) {
        return LeaseOutcome::Expired;
    }
    let attributes = &item.attributes;
    builder.claims.insert(reserved.key.seq);
    if part.consumes(item) {
        builder.delete(reserved.topic, reserved.key.seq, attributes.expires_at);
        builder.tally(reserved.topic).consumed += 1;
        builder.note(RowKind::Deletion, 1);
        return LeaseOutcome::Consumed;
    }
    builder.note(RowKind::Lease, 1);
    let lease = part.span(item);
    let (delivery, nonce, deadline) = (attributes.deliveries + 1, builder.rng.random(), now.plus(lease));
    builder.batch.leases.push(LeaseEntry {
        seq: reserved.key.seq,
        topic: reserved.topic,
        priority: reserved.key.priority,
        rank: reserved.key.rank,
        attributes: ItemAttributes { deliveries: delivery, ..*attributes },
        bytes: item.bytes,
        nonce,
        leased_at: now,
        deadline,
        consumer: part.consumer.clone(),
        began: builder.batch.number,
    });
    LeaseOutcome::Lease { delivery, nonce, deadline }
}

/// Adds at-most-once items that nobody received, until the batch costs so much: they are inserted again.
pub(super) fn add_restores(builder: &mut BatchBuilder<'_>, most: usize) {
    if builder.allowed < Need::Items {
        return;
    }
    builder.shard.intake.restores.begin(builder.left(most) / builder.prices.of(RowKind::Item));
    while builder.spent < most {
        let Some(Turn { work, .. }) = builder.shard.intake.restores.pop(|_| true) else { break };
        let Restore { reserved, .. } = work;
        let Some(body) = reserved.item.body.clone() else {
            broken("an item that was delivered has its body");
            continue;
        };
        builder.batch.inserts.push(ItemRow {
            topic: reserved.topic,
            key: reserved.key,
            state: State::Ready,
            attributes: reserved.item.attributes,
            body,
        });
        builder.adds_expiry(reserved.item.attributes.expires_at);
        builder.claims.insert(reserved.key.seq);
        builder.count(reserved.topic, 1, 0, 0);
        builder.tally(reserved.topic).consumed -= 1;
        builder.spend(RowKind::Item, 1);
        builder.note_bytes(reserved.item.bytes as usize);
        builder.planned.push(PlannedAction::Restore(Box::new(reserved)));
    }
}

/// Rewrites a lease row that is mostly closed: what is still open moves to this batch's row.
pub(super) fn compact(builder: &mut BatchBuilder<'_>) {
    if builder.rows == 0 || builder.allowed < Need::Rows || !builder.may_do_upkeep() {
        return;
    }
    let Some(row) = builder.shard.contents.leases.sparse() else { return };
    let open = row.entries.iter().zip(&row.open).filter(|(_, open)| **open).map(|(lease, _)| lease);
    let moving: Vec<Seq> = open.map(|lease| lease.seq).filter(|seq| !builder.claims.contains(*seq)).collect();
    for seq in moving {
        let leases = &builder.shard.contents.leases;
        let Some((position, lease)) = leases.find(seq).map(|found| (found.0, leases.as_of_now(found))) else {
            broken("an open delivery has its position");
            continue;
        };
        builder.close(position);
        builder.planned.push(PlannedAction::MoveLease(lease.seq));
        builder.batch.leases.push(lease);
        builder.spend(RowKind::Extension, 1);
    }
}
