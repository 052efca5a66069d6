//! A page of an operation in the batch: what it does to each item, and how far the operation is then. Both
//! are committed together, so its counts are exact whoever goes on with it.

use forebay_store::{
    DueKey, LeaseEntry, OperationFailure, OperationKind, OperationProgress, OperationSpec, Redrive,
};
use forebay_types::{ItemAttributes, ItemId, Key, Receipt, Refusal, Timestamp, TopicId};

use super::{builder::BatchBuilder, enqueue, settle, update};
use crate::{
    api::{ItemUpdate, OperationItems, takes_unreadable},
    planted::{Bug, on},
    shard::{
        commit::{
            disk_room::Need,
            in_flight::{OperationEffect, PlannedOperation},
            row_costs::RowKind,
        },
        work::{OperationItem, OperationPage, Place, ReadyItem, SettleKind, SettleRequest},
    },
};

/// The result for one item.
enum ItemOutcome {
    /// It was changed.
    Changed,
    /// It does not fit any more.
    Skipped,
    /// It can't be changed.
    Failed,
    /// The operation can't go on in this shard.
    Ends(OperationFailure),
}

/// How much room on the disk an operation needs.
fn need(kind: OperationKind) -> Need {
    match kind {
        OperationKind::Redrive => Need::Items,
        OperationKind::ResetLeases | OperationKind::Update => Need::Rows,
        OperationKind::Purge | OperationKind::DeleteDead | OperationKind::Cancel => Need::Nothing,
    }
}

/// How much of the batch the page that waits wants: a quarter at most. Nothing, if there is no room for it
/// on the disk. The page of an operation that has ended is dropped: no row shall be kept for it.
pub(super) fn wanted(builder: &mut BatchBuilder<'_>) -> usize {
    let operations = &mut builder.shard.upkeep.operations;
    let Some(id) = operations.page_of() else { return 0 };
    let Some(part) = operations.get(id).filter(|part| part.is_open()) else {
        operations.drop_page();
        return 0;
    };
    match builder.allowed < need(part.row.spec.kind) {
        true => 0,
        false => {
            let all = operations.page_rows() * builder.prices.of(RowKind::Change);
            all.min((builder.rows_max / 4).max(1))
        }
    }
}

/// Adds the page that waits, if any: what costs so much of it.
pub(super) fn add_page(builder: &mut BatchBuilder<'_>, share: usize, topics_of: enqueue::TopicsOf<'_>) {
    let rows = share.div_ceil(builder.prices.of(RowKind::Change));
    // Work that had the room may not have used it: then the batch is the operation's.
    let rows = if builder.rows == 0 { rows.max(1) } else { rows };
    if builder.is_bisecting() && builder.rows > 0 || rows == 0 {
        return;
    }
    let Some(page) = builder.shard.upkeep.operations.take_page() else { return };
    if builder.batch.operations.iter().any(|row| row.spec.id == page.id) {
        // It is wished otherwise by this batch.
        return builder.shard.upkeep.operations.put_back(page);
    }
    let Some(part) = builder.shard.upkeep.operations.get(page.id).filter(|part| part.is_open()) else {
        return builder.shard.upkeep.operations.drop_page();
    };
    let (spec, before) = (part.row.spec.clone(), part.row.progress);
    let is_understood = part.filter.is_some();
    if builder.allowed < need(spec.kind) {
        return builder.shard.upkeep.operations.put_back(page);
    }
    // No more at once than it may in a second.
    let of_second = (spec.wish.rate / spec.wish.active.max(1)).max(1) as usize;
    let rows = rows.min(of_second);
    let limit = match &spec.limits {
        Some(limits) => limits.get(&builder.shard.id).copied().unwrap_or(0),
        None => u64::MAX,
    };
    let wanted = spec.update.as_ref().map(update::of_operation).unwrap_or_default();
    let mut step = Step { spec: &spec, wanted, progress: before, effects: Vec::new(), limit, topics_of };
    let taken = step.take(builder, &page, rows);
    let Step { mut progress, effects, .. } = step;
    let rest = page.items.len() > taken;
    match (rest, page.next) {
        _ if progress.failure.is_some() || !is_understood => progress.ended_at = Some(builder.moment.now),
        _ if progress.changed >= limit => progress.ended_at = Some(builder.moment.now),
        (true, _) => {
            if let Some(last) = page.items[..taken].last() {
                progress.cursor = last.cursor();
            }
        }
        (false, Some(next)) => progress.cursor = next,
        (false, None) => progress.ended_at = Some(builder.moment.now),
    }
    if on(Bug::OperationCountsLost) {
        (progress.matched, progress.changed) = (before.matched, before.changed);
    }
    if on(Bug::OperationEffectLost) {
        builder.batch.purges.clear();
        builder.batch.redrives.clear();
        builder.batch.updates.retain(|row| !row.is_operated);
    }
    builder.batch.operation_progress.push((page.id, progress));
    let items = OperationItems {
        changed: progress.changed - before.changed,
        skipped: progress.skipped - before.skipped,
        failed: progress.failed - before.failed,
    };
    builder.spend(RowKind::Change, usize::from(items.changed == 0));
    let namespace = spec.namespace.as_str().into();
    builder.operation = Some(PlannedOperation { page, progress, items, effects, kind: spec.kind, namespace });
}

/// One page of an operation.
struct Step<'a> {
    /// The operation.
    spec: &'a OperationSpec,
    /// The new values of items, of an update.
    wanted: ItemUpdate,
    /// How far it is.
    progress: OperationProgress,
    /// The changes in memory.
    effects: Vec<OperationEffect>,
    /// At most so many items of the shard are changed.
    limit: u64,
    /// How many topics a namespace has on this node.
    topics_of: enqueue::TopicsOf<'a>,
}

impl Step<'_> {
    /// Takes items of the page, so many at most. Returns how many.
    fn take(&mut self, builder: &mut BatchBuilder<'_>, page: &OperationPage, rows: usize) -> usize {
        let (now, shard) = (builder.moment.now, builder.shard.id);
        let mut changed = 0;
        for (at, item) in page.items.iter().enumerate() {
            if changed == rows || self.progress.changed >= self.limit {
                return at;
            }
            let Some(part) = builder.shard.upkeep.operations.get(page.id) else { return at };
            let Some(filter) = &part.filter else { return at };
            if self.is_passed_over(item) {
                continue;
            }
            self.progress.scanned += 1;
            // Of one that can't be read nobody knows whether it passes.
            let is_known = !item.unreadable || takes_unreadable(self.spec.kind, filter);
            if is_known && !filter.holds(|field| item.held(field, shard, now)) {
                continue;
            }
            self.progress.matched += 1;
            let before = builder.rows;
            let done = match part.parked.contains(&item.key.seq) || !is_known {
                true => ItemOutcome::Failed,
                false => self.change(builder, item),
            };
            match done {
                ItemOutcome::Changed => {
                    if self.removes() {
                        builder.free_key(item.key.seq, item.attributes.enqueued_at);
                    }
                    self.progress.changed += 1;
                    changed += 1;
                    // The end of a delivery is counted there.
                    builder.spend(RowKind::Change, 1 - (builder.rows - before));
                }
                ItemOutcome::Skipped => self.progress.skipped += 1,
                ItemOutcome::Failed => self.progress.failed += 1,
                ItemOutcome::Ends(failure) => {
                    self.progress.failure = Some(failure);
                    self.progress.scanned -= 1;
                    self.progress.matched -= 1;
                    return at;
                }
            }
        }
        page.items.len()
    }

    /// It was stored since the operation began, or the operation has met it before, at its old place.
    fn is_passed_over(&self, item: &OperationItem) -> bool {
        let is_update = self.spec.kind == OperationKind::Update;
        let is_met = is_update && item.attributes.updated_by == self.spec.id.mark();
        item.key.seq > self.progress.as_of || is_met && !on(Bug::OperationUpdatesTwice)
    }

    fn change(&mut self, builder: &mut BatchBuilder<'_>, item: &OperationItem) -> ItemOutcome {
        let seq = item.key.seq;
        let shard = &builder.shard;
        if builder.claims.contains(seq)
            || shard.upkeep.operations.is_invalidated(seq)
            || shard.contents.reserved.contains(&seq)
        {
            return ItemOutcome::Skipped;
        }
        match (self.spec.kind, &item.place) {
            (OperationKind::Purge | OperationKind::Cancel, Place::Scheduled) => {
                self.purge(builder, item, true)
            }
            (OperationKind::Purge | OperationKind::Cancel, Place::Ready) => {
                match shard.contents.leases.get(seq).map(LeaseEntry::delivery) {
                    None => self.purge(builder, item, false),
                    Some(_) if !self.takes_leased() => ItemOutcome::Skipped,
                    Some(_) if self.is_lease_spared() => self.purge(builder, item, false),
                    Some(delivery) => end_lease(builder, item, delivery, SettleKind::Purge),
                }
            }
            (OperationKind::Update, Place::Scheduled | Place::Ready) => self.update(builder, item),
            (OperationKind::ResetLeases, Place::Leased { delivery, .. }) => {
                end_lease(builder, item, *delivery, SettleKind::Reset)
            }
            (OperationKind::DeleteDead | OperationKind::Cancel, Place::Dead { .. }) => {
                builder.claims.insert(seq);
                builder.batch.dead_letter_purges.push(seq);
                builder.remove_dead_letter(item.topic, &self.spec.namespace.as_str().into());
                self.effects.push(OperationEffect::DeadLetterGone(seq));
                ItemOutcome::Changed
            }
            (OperationKind::Redrive, Place::Dead { .. }) if self.is_redriven_enough(item) => {
                ItemOutcome::Skipped
            }
            (OperationKind::Redrive, Place::Dead { packed, .. }) => match self.redrive(builder, item, packed)
            {
                Ok(()) => ItemOutcome::Changed,
                // Nor can it be made for the next one.
                Err(_) => ItemOutcome::Ends(OperationFailure::Target),
            },
            _ => ItemOutcome::Skipped,
        }
    }

    /// Whether it removes the items that it changes.
    fn removes(&self) -> bool {
        matches!(self.spec.kind, OperationKind::Purge | OperationKind::DeleteDead | OperationKind::Cancel)
    }

    /// Leased items are removed too.
    fn takes_leased(&self) -> bool {
        self.spec.leased || self.spec.kind == OperationKind::Cancel
    }

    /// A planted bug: a leased item is removed without its lease.
    fn is_lease_spared(&self) -> bool {
        match self.spec.kind {
            OperationKind::Cancel => on(Bug::CancelledLeaseLives),
            _ => on(Bug::PurgedLeaseLives),
        }
    }

    /// An item that waits is removed.
    fn purge(
        &mut self,
        builder: &mut BatchBuilder<'_>,
        item: &OperationItem,
        is_scheduled: bool,
    ) -> ItemOutcome {
        builder.batch.purges.push(item.key.seq);
        self.effects.push(take_out(builder, item, is_scheduled));
        ItemOutcome::Changed
    }

    /// An item that waits gets other values, unless it is leased, has expired, or would never be due.
    fn update(&mut self, builder: &mut BatchBuilder<'_>, item: &OperationItem) -> ItemOutcome {
        let now = builder.moment.now;
        if builder.shard.is_leased(item.key.seq) || item.attributes.is_expired(now) {
            return ItemOutcome::Skipped;
        }
        let Ok(target) = update::target(item, &self.wanted, now) else { return ItemOutcome::Skipped };
        let mark = Some(self.spec.id.mark());
        self.effects.push(update::write(builder, item, &self.wanted, &target, mark));
        ItemOutcome::Changed
    }

    fn is_redriven_enough(&self, item: &OperationItem) -> bool {
        self.spec.max_redrives.is_some_and(|most| item.attributes.redrives >= most)
    }

    /// A dead letter is an item again: at the end of its priority, without failures, and without its old
    /// expiry.
    fn redrive(
        &mut self,
        builder: &mut BatchBuilder<'_>,
        item: &OperationItem,
        packed: &[u8],
    ) -> Result<(), Refusal> {
        let topic: TopicId = enqueue::topic_named(builder, &self.spec.target(), self.topics_of)?;
        let now = builder.moment.now;
        let key = Key { rank: now.as_micros(), ..item.key };
        let expires_at = self.spec.ttl.map(|ttl| now.plus(ttl));
        let redrives = item.attributes.redrives.saturating_add(1);
        let attributes = ItemAttributes { expires_at, failures: 0, redrives, ..item.attributes };
        builder.claims.insert(key.seq);
        builder.adds_expiry(expires_at);
        if item.topic == topic {
            builder.lose_dead_letter(topic);
        } else {
            builder.remove_dead_letter(item.topic, &self.spec.namespace.as_str().into());
            builder.tally(topic).enqueued += 1;
        }
        builder.count(topic, 1, 0, 0);
        builder.batch.redrives.push(Redrive { topic, key, attributes, packed: packed.to_vec() });
        let item = ReadyItem { attributes, bytes: item.bytes, body: None };
        self.effects.push(OperationEffect::Redriven(topic, key, item));
        Ok(())
    }
}

/// An item that waits leaves the shard, with all that its deleted row does not say.
pub(super) fn take_out(
    builder: &mut BatchBuilder<'_>,
    item: &OperationItem,
    is_scheduled: bool,
) -> OperationEffect {
    let seq = item.key.seq;
    builder.claims.insert(seq);
    builder.tally(item.topic).removed += 1;
    if let Some(at) = item.attributes.expires_at {
        builder.batch.expiry_deletes.push(DueKey { at, seq });
    }
    if is_scheduled {
        builder.batch.schedule_deletes.push(DueKey { at: Timestamp::from_micros(item.key.rank), seq });
        builder.count(item.topic, 0, -1, 0);
    } else {
        builder.count(item.topic, -1, 0, 0);
    }
    let windowed = builder.shard.contents.topics.with_window(item.topic, |window| window.remove(item.key));
    OperationEffect::Purged(item.topic, item.key, windowed.flatten())
}

/// A delivery ends, if it is still the one that was seen.
fn end_lease(
    builder: &mut BatchBuilder<'_>,
    item: &OperationItem,
    delivery: u32,
    kind: SettleKind,
) -> ItemOutcome {
    let seq = item.key.seq;
    let Some(lease) = builder.shard.contents.leases.get(seq).filter(|lease| lease.delivery() == delivery)
    else {
        return ItemOutcome::Skipped;
    };
    let (topic, nonce) = (lease.topic, lease.nonce);
    let item = ItemId { shard: builder.shard.id, seq };
    let namespace = builder.shard.namespace_of(topic);
    let receipt = Receipt { item, delivery, nonce };
    settle::add(builder, SettleRequest { namespace, receipt, kind, slot: None });
    ItemOutcome::Changed
}
