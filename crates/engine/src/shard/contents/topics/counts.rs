//! Counts without counting rows: exact in memory, one row of changes a batch in the store. Old changes are
//! folded into the topics' own rows.

use std::collections::BTreeMap;

use forebay_store::{Batch, LeaseEntry, Tally, TopicCounts, TopicTally};
use forebay_types::{Monotonic, Timestamp, TopicId, TopicName};
use rustc_hash::FxHashSet;

use super::{rates::Flow, state::TopicState, table::TopicTable};
use crate::{
    invariant::broken,
    planted::{Bug, on},
    shard::commit::in_flight::InFlight,
};

/// Batches after which a topic's counts are folded into its row.
const FOLD_AFTER: u64 = 256;
/// Topics that one batch folds, beside as many as it changes: so the deltas do not pile up.
const FOLDS_MAX: usize = 64;
/// Topics that one batch folds once the deltas pile up. With them it takes several times as long as another.
const FOLDS_BEHIND_MAX: usize = 512;

impl TopicTable {
    /// Writes the counts of topics that changed long ago into their rows, so that old deltas can be deleted.
    /// Returns the topics: none, while tallies are still to be read. `is_shared`: several tenants wait for
    /// the batch.
    pub fn fold(
        &self,
        batch: &mut Batch,
        deltas: &BTreeMap<TopicId, TopicCounts>,
        tallies: &BTreeMap<TopicId, Tally>,
        now: Timestamp,
        is_shared: bool,
    ) -> Vec<TopicId> {
        if !self.tally_load.is_done() && !on(Bug::FoldedUnread) {
            return Vec::new();
        }
        let since = |id: &TopicId| self.get(*id).and_then(|topic| topic.dirty_since);
        let oldest = self.dirty.iter().find_map(&since).unwrap_or(batch.number);
        // Topics that were loaded with deltas have `dirty_since` 0: they are folded once, without haste.
        let behind = if oldest == 0 { FOLD_AFTER } else { batch.number - oldest };
        if behind < FOLD_AFTER {
            // Every topic in the deltas before that one was folded, or is gone.
            if oldest >= self.deltas_from + FOLD_AFTER {
                batch.drop_deltas = Some(self.deltas_from..oldest);
            }
            return Vec::new();
        }
        // Even what is behind becomes less with each of these. So nobody need wait for more of them.
        let keeps_up = (deltas.len() + FOLDS_MAX).min(FOLDS_BEHIND_MAX);
        let most = if is_shared || behind < 4 * FOLD_AFTER { keeps_up } else { FOLDS_BEHIND_MAX };
        // The queue is in the order of `dirty_since`.
        let old = |id: &&TopicId| since(id).is_none_or(|since| since <= oldest + FOLD_AFTER / 2);
        let folds: Vec<TopicId> = self.dirty.iter().take_while(old).take(most).copied().collect();
        let forgotten = batch.folds.iter().map(|(id, ..)| id).chain(&batch.drop_topics);
        let forgotten: FxHashSet<TopicId> = forgotten.copied().collect();
        for id in &folds {
            let Some(topic) = self.get(*id) else { continue };
            if forgotten.contains(id) {
                continue;
            }
            let mut counts = topic.counts;
            if let Some(delta) = deltas.get(id) {
                counts += *delta;
            }
            let mut tally = topic.tally;
            add(&mut tally, tallies.get(id).copied().unwrap_or_default(), now);
            batch.folds.push((*id, counts, tally));
        }
        let rest = self.dirty.iter().skip(folds.len()).find_map(since);
        batch.drop_deltas = Some(self.deltas_from..rest.unwrap_or(batch.number).max(self.deltas_from));
        folds
    }

    /// A batch was committed: its deltas count, its folds are done.
    /// Returns what happened in its topics.
    pub fn apply_counts(&mut self, batch: &InFlight, at: Monotonic) -> Vec<(TopicName, Flow)> {
        let folded: FxHashSet<TopicId> = batch.folds.iter().copied().collect();
        self.deltas_from = batch.deltas_from.unwrap_or(self.deltas_from);
        // The folded ones are at the head of the queue.
        self.dirty.drain(..batch.folds.len().min(self.dirty.len()));
        for id in &folded {
            if let Some(topic) = self.get_mut(*id) {
                topic.dirty_since = None;
            }
        }
        // Topics at its head that are gone are not looked at again with every batch.
        while self.dirty.front().is_some_and(|id| self.get(*id).is_none()) {
            self.dirty.pop_front();
        }
        for (id, delta) in &batch.deltas {
            self.count(*id, delta, at);
            self.mark_dirty(*id, batch.number, &folded);
        }
        let mut flows = Vec::with_capacity(batch.tallies.len());
        for (id, delta) in &batch.tallies {
            let Some(topic) = self.mark_dirty(*id, batch.number, &folded) else { continue };
            let flow = flow(delta);
            topic.recent.add(flow, at);
            flows.push((topic.name.clone(), flow));
            let [_, consumed, acked, ..] = flow;
            if consumed > 0 {
                topic.last.delivered(batch.marks.time);
            }
            if acked > 0 {
                topic.last.acked(batch.marks.time);
            }
            add(&mut topic.tally, *delta, batch.marks.time);
            if on(Bug::CountedTwice) {
                add(&mut topic.tally, *delta, batch.marks.time);
            }
        }
        flows
    }

    /// A planted bug: what did not happen is counted.
    pub fn apply_tallies(&mut self, tallies: &[(TopicId, Tally)], at: Timestamp) {
        for (id, delta) in tallies {
            if let Some(topic) = self.get_mut(*id) {
                add(&mut topic.tally, *delta, at);
            }
        }
    }

    /// A batch was committed, and with it the deliveries that it begins. Those that go on in another lease
    /// row began earlier. Adds to what happened in its topics.
    pub fn count_deliveries(
        &mut self,
        batch: &InFlight,
        leases: &[LeaseEntry],
        at: Monotonic,
        flows: &mut Vec<(TopicName, Flow)>,
    ) {
        for of_topic in leases.chunk_by(|one, other| one.topic == other.topic) {
            let began = of_topic.iter().filter(|lease| lease.began == batch.number).count();
            if let Some(topic) = of_topic.first().and_then(|lease| self.get_mut(lease.topic)) {
                let flow = [0, u32::try_from(began).unwrap_or(u32::MAX), 0, 0, 0];
                topic.recent.add(flow, at);
                if began > 0 {
                    topic.last.delivered(batch.marks.time);
                }
                flows.push((topic.name.clone(), flow));
            }
        }
    }

    /// A topic has a delta that is not folded yet, but for those whose fold is in the same batch.
    fn mark_dirty(
        &mut self,
        id: TopicId,
        batch: u64,
        folded: &FxHashSet<TopicId>,
    ) -> Option<&mut TopicState> {
        let Some(topic) = self.by_id.get_mut(&id) else {
            broken("a topic whose counts change is known");
            return None;
        };
        if topic.dirty_since.is_none() && !folded.contains(&id) {
            topic.dirty_since = Some(batch);
            self.dirty.push_back(id);
        }
        Some(topic)
    }
}

/// The flow of a batch, but for deliveries that it began and that are open. An at-most-once delivery that is
/// taken back is not subtracted: it was a moment ago.
fn flow(tally: &Tally) -> Flow {
    let count = |count: i64| u32::try_from(count.max(0)).unwrap_or(u32::MAX);
    let Tally { enqueued, acked, consumed, failed, dead_lettered, .. } = *tally;
    [count(enqueued), count(consumed), count(acked + consumed), count(failed), count(dead_lettered)]
}

/// Adds what a batch counted at this time.
fn add(sum: &mut Option<TopicTally>, delta: Tally, at: Timestamp) {
    if delta != Tally::default() {
        sum.get_or_insert(TopicTally { since: at, tally: Tally::default() }).tally += delta;
    }
}
