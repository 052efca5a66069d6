//! Comparison of a batch's tallies with its changes of items.

use std::{collections::BTreeMap, ops::Bound};

use forebay_store::{Batch, Tally, TopicTally};
use forebay_types::{Seq, Timestamp, TopicId};

use super::{change::AppliedBatch, tables::Tables};

/// Changes of a topic's items by a batch, as far as its rows tell.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    /// Items inserted.
    inserts: i64,
    /// Items deleted.
    deletes: i64,
    /// Deliveries that failed, and whose item waits again.
    failed: i64,
    /// Deliveries that did not fail, and whose item waits again.
    returned: i64,
    /// Items that became dead letters.
    died: i64,
    /// Items that an operation or a caller removed.
    removed: i64,
    /// Dead letters that went, but for those that are items of the topic again.
    dead_gone: i64,
    /// Items that came from the dead letters of another topic.
    came: i64,
}

impl Deeds {
    /// Dead letters that went, but for those that are items of the topic again.
    pub(super) fn dead_gone(&self) -> i64 {
        self.dead_gone
    }
}

impl Tables {
    /// The tallies in the rows of topics.
    pub fn tallies(&self, after: TopicId, limit: usize) -> Vec<(TopicId, TopicTally)> {
        let behind = self.topics.range((Bound::Excluded(after), Bound::Unbounded));
        behind.filter_map(|(id, entry)| Some((*id, entry.tally?))).take(limit).collect()
    }

    /// Returns the tally of a topic's items, as far as its row does not tell it to [`Tables::tallies`].
    pub fn loaded_tally(&self, topic: TopicId) -> Option<TopicTally> {
        let entry = self.topics.get(&topic)?;
        let mut sum: Option<TopicTally> = None;
        for (_, (at, tallies)) in self.tallies.range(entry.folded + 1..) {
            for (_, delta) in tallies.iter().filter(|(counted, _)| *counted == topic) {
                sum.get_or_insert(TopicTally { since: *at, tally: Tally::default() }).tally += *delta;
            }
        }
        sum
    }

    pub(super) fn deltas_from(&self) -> u64 {
        let first = self.deltas.keys().chain(self.tallies.keys()).min().copied();
        first.or_else(|| self.topics.values().map(|entry| entry.folded).max()).unwrap_or(0)
    }

    /// Returns the changes by a batch, before it is applied.
    pub(super) fn deeds(&self, batch: &Batch) -> BTreeMap<TopicId, Deeds> {
        let mut deeds: BTreeMap<TopicId, Deeds> = BTreeMap::new();
        let topic = |seq: &Seq| self.items.get(seq).map(|row| row.topic);
        for row in &batch.inserts {
            deeds.entry(row.topic).or_default().inserts += 1;
        }
        for topic in batch.deletes.iter().filter_map(topic) {
            deeds.entry(topic).or_default().deletes += 1;
        }
        for requeue in &batch.requeues {
            let Some(topic) = topic(&requeue.seq) else { continue };
            let deeds = deeds.entry(topic).or_default();
            deeds.failed += i64::from(requeue.failure.is_some());
            deeds.returned += i64::from(requeue.failure.is_none());
        }
        for topic in batch.dead_letters.iter().filter_map(|letter| topic(&letter.seq)) {
            deeds.entry(topic).or_default().died += 1;
        }
        for topic in batch.purges.iter().chain(&batch.cancels).filter_map(topic) {
            deeds.entry(topic).or_default().removed += 1;
        }
        let dead = |seq: &Seq| self.dead.get(seq).map(|(row, _)| row.topic);
        let gone = batch.dead_letter_deletes.iter().chain(&batch.dead_letter_purges);
        for topic in gone.chain(&batch.dead_letter_cancels).filter_map(dead) {
            deeds.entry(topic).or_default().dead_gone += 1;
        }
        for redrive in &batch.redrives {
            let Some(from) = dead(&redrive.key.seq).filter(|from| *from != redrive.topic) else { continue };
            deeds.entry(from).or_default().dead_gone += 1;
            deeds.entry(redrive.topic).or_default().came += 1;
        }
        deeds
    }

    /// Whether the batch counts what it does.
    pub(super) fn check_tallies(batch: &Batch, deeds: &BTreeMap<TopicId, Deeds>, done: &mut AppliedBatch) {
        let counted: BTreeMap<TopicId, Tally> = batch.tallies.iter().copied().collect();
        for topic in counted.keys().chain(deeds.keys()) {
            let tally = counted.get(topic).copied().unwrap_or_default();
            let none = Deeds::default();
            let deeds = deeds.get(topic).unwrap_or(&none);
            // Items that were deleted and neither acked nor consumed have expired. At-most-once items that
            // return are inserted, and taken off the consumed ones.
            let stored = tally.enqueued - deeds.came;
            let expired = deeds.deletes - deeds.inserts + stored - tally.acked - tally.consumed;
            // Their namespaces count what goes of topics that are forgotten.
            let is_forgotten = batch.dormant_losses.iter().any(|(dormant, _)| dormant == topic);
            let dead_gone = if is_forgotten { 0 } else { deeds.dead_gone };
            let holds = tally.dead_lettered == deeds.died
                && tally.expired == expired
                && tally.removed == deeds.removed + dead_gone
                && (0..=expired).contains(&(tally.failed - deeds.failed - deeds.died))
                && (0..=expired + deeds.removed).contains(&(tally.returned - deeds.returned));
            if !holds {
                let what = format!("topic {} counts {tally:?}, and has {deeds:?}", topic.0);
                done.violation("CONSERVATION", what);
            }
        }
    }

    /// Stores what a batch counts. A fold must be what all batches have counted.
    pub(super) fn count_tallies(&mut self, batch: &Batch, done: &mut AppliedBatch) {
        let at = batch.marks.map_or(Timestamp::MIN, |marks| marks.time);
        if !batch.tallies.is_empty() {
            self.tallies.insert(batch.number, (at, batch.tallies.clone()));
        }
        for (topic, delta) in &batch.tallies {
            done.topics.insert(*topic);
            let Some(entry) = self.topics.get_mut(topic) else {
                let what = format!("topic {} is missing, and counts {delta:?}", topic.0);
                done.violation("CONSERVATION", what);
                continue;
            };
            let new = TopicTally { since: at, tally: Tally::default() };
            entry.counted.get_or_insert(new).tally += *delta;
        }
        for (topic, _, tally) in &batch.folds {
            let Some(entry) = self.topics.get_mut(topic) else { continue };
            // A topic that becomes dormant leaves what it counted to its namespace.
            if tally.is_some() && entry.counted != *tally && self.strict {
                let what = format!("{} counted {:?}, folded as {tally:?}", entry.name, entry.counted);
                done.violation("CONSERVATION", what);
            }
            (entry.tally, entry.counted) = (*tally, *tally);
        }
    }
}
