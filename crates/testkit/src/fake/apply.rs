//! Applies a batch to the rows.
//!
//! A SQL store overlooks many mistakes: a DELETE that finds no row is no error. The fake is stricter. It
//! records whatever a correct engine never does as a violation, and the run fails.

use std::collections::BTreeMap;

use bytes::Bytes;
use forebay_store::{
    Batch, Checkpoint, DeadLetter, DedupeEntry, DueKey, PutOff, Requeue, TopicCounts, TopicRow,
};
use forebay_types::{DeliveryPolicy, Failure, Seq, State, Timestamp, TopicId};

use super::{
    change::{AppliedBatch, Change},
    namespace_tallies::RemovedDormant,
    tables::{Tables, TopicEntry},
};

impl Tables {
    /// Applies a batch in the order of its fields, the fence last.
    pub(super) fn apply(&mut self, batch: &Batch) -> AppliedBatch {
        let mut done = AppliedBatch::default();
        self.check_marks(batch, &mut done);
        let deeds = self.deeds(batch);
        if self.strict {
            Self::check_tallies(batch, &deeds, &mut done);
        }
        let removed_dormant = self.removed_dormant(batch, &deeds);
        for topic in &batch.new_topics {
            self.create_topic(topic, &mut done);
        }
        self.insert(batch, &mut done);
        self.lease(batch, &mut done);
        for key in &batch.promotes {
            self.promote(*key, &mut done);
        }
        for row in &batch.put_offs {
            self.put_off(*row, &mut done);
        }
        for requeue in &batch.requeues {
            self.requeue(requeue, &mut done);
        }
        for letter in &batch.dead_letters {
            self.dead_letter(letter, &mut done);
        }
        for seq in &batch.dead_letter_deletes {
            self.delete_dead_letter(*seq, batch, &mut done);
        }
        for (seq, until) in &batch.dead_letter_keeps {
            self.keep_dead_letter(*seq, *until, &mut done);
        }
        for seq in &batch.deletes {
            self.delete(*seq, &mut done);
        }
        self.operate(batch, &mut done);
        for DueKey { at, seq } in &batch.schedule_deletes {
            if !self.schedule.remove(&(*at, *seq)) {
                done.violation("CONSERVATION", format!("item {} has no schedule row to delete", seq.0));
            }
            done.items.insert(*seq);
        }
        for DueKey { at, seq } in &batch.expiry_deletes {
            // A missing row is no error: the expiry sweep deletes the row of a leased item early.
            self.expiry.remove(&(*at, *seq));
            done.items.insert(*seq);
        }
        for row in &batch.updates {
            self.update(row, &mut done);
        }
        for row in &batch.lease_changes {
            self.change_lease(row, &mut done);
        }
        self.settle_leases(&mut done);
        self.remember(batch, &mut done);
        self.count(batch, &removed_dormant, &mut done);
        if let Some(history) = &batch.topology_history {
            self.topology_history.clone_from(history);
        }
        for Checkpoint { sweep, at } in &batch.checkpoints {
            self.checkpoints.insert(*sweep, *at);
        }
        self.write_operations(batch, &mut done);
        self.audit(&mut done);
        self.fence.batch = batch.number;
        if let Some(marks) = batch.marks {
            self.fence.marks = marks;
        }
        done
    }

    fn check_marks(&self, batch: &Batch, done: &mut AppliedBatch) {
        let old = self.fence.marks;
        let Some(new) = batch.marks else { return };
        if new.seq < old.seq || new.topic < old.topic || new.rank < old.rank || new.time < old.time {
            done.violation("ONE-OWNER", format!("the high-water marks fall from {old:?} to {new:?}"));
        }
    }

    fn create_topic(&mut self, topic: &TopicRow, done: &mut AppliedBatch) {
        let entry = TopicEntry {
            name: topic.name.clone(),
            counts: TopicCounts::default(),
            folded: 0,
            actual: TopicCounts::default(),
            tally: None,
            counted: None,
        };
        // A dormant topic keeps its name and number, and is never used again.
        let in_use = |other: &&TopicEntry| (other.actual.ready, other.actual.scheduled) != (0, 0);
        if self.topics.values().filter(in_use).any(|other| other.name == topic.name) {
            done.violation("CONSERVATION", format!("topic {} was created twice", topic.name));
        }
        if self.topics.insert(topic.id, entry).is_some() {
            done.violation("CONSERVATION", format!("topic number {} was given out twice", topic.id.0));
        }
        done.topics.insert(topic.id);
    }

    fn insert(&mut self, batch: &Batch, done: &mut AppliedBatch) {
        let new = batch.marks.unwrap_or(self.fence.marks);
        for row in &batch.inserts {
            let seq = row.key.seq;
            let returns =
                row.attributes.policy == DeliveryPolicy::AtMostOnce && row.attributes.deliveries > 0;
            if self.items.contains_key(&seq) || self.dead.contains_key(&seq) {
                done.violation("NO-PHANTOM", format!("item {} was inserted twice", seq.0));
            }
            if !returns && seq <= self.fence.marks.seq {
                done.violation("NO-PHANTOM", format!("item number {} was given out before", seq.0));
            }
            if seq > new.seq {
                let mark = new.seq.0;
                done.violation("NO-PHANTOM", format!("item {} exceeds the high-water mark {mark}", seq.0));
            }
            // The rank of an item that was due before it was stored is its due time.
            let highest = new.rank.max(new.time.as_micros());
            if !returns && row.state == State::Ready && row.key.rank > highest {
                let rank = row.key.rank;
                done.violation("PRIORITY", format!("rank {rank} exceeds the high-water mark {highest}"));
            }
            if !self.topics.contains_key(&row.topic) {
                let topic = row.topic.0;
                done.violation("CONSERVATION", format!("the topic {topic} of item {} is missing", seq.0));
            }
            if let Some(end) = row.attributes.expires_at {
                self.expiry.insert((end, seq));
            }
            self.put(row.clone());
            done.items.insert(seq);
            done.topics.insert(row.topic);
            done.changes.push(Change::Inserted(row.clone()));
        }
    }

    fn promote(&mut self, DueKey { at, seq }: DueKey, done: &mut AppliedBatch) {
        done.items.insert(seq);
        if !self.schedule.remove(&(at, seq)) {
            done.violation("CONSERVATION", format!("item {} was promoted without a schedule row", seq.0));
        }
        let Some(mut row) = self.take(seq) else {
            return done.violation("CONSERVATION", format!("item {} was promoted and is missing", seq.0));
        };
        if row.state != State::Scheduled {
            done.violation("CONSERVATION", format!("item {} was promoted and is ready", seq.0));
        }
        row.state = State::Ready;
        done.topics.insert(row.topic);
        self.put(row);
        done.changes.push(Change::Promoted(seq));
    }

    fn put_off(&mut self, PutOff { seq, from, to }: PutOff, done: &mut AppliedBatch) {
        done.items.insert(seq);
        if !self.schedule.remove(&(from, seq)) {
            done.violation("CONSERVATION", format!("item {} was put off without a schedule row", seq.0));
        }
        let Some(mut row) = self.take(seq).filter(|row| row.state == State::Scheduled) else {
            return done
                .violation("CONSERVATION", format!("item {} was put off and is not scheduled", seq.0));
        };
        if to <= from {
            done.violation("TIME", format!("item {} was put off from {from:?} to {to:?}", seq.0));
        }
        row.key.rank = to.as_micros();
        self.put(row);
        done.changes.push(Change::PutOff(seq, to));
    }

    fn requeue(&mut self, requeue: &Requeue, done: &mut AppliedBatch) {
        let seq = requeue.seq;
        done.items.insert(seq);
        let Some(mut row) = self.take(seq) else {
            return done.violation("CONSERVATION", format!("item {} was requeued and is missing", seq.0));
        };
        if row.state != State::Ready {
            done.violation("CONSERVATION", format!("item {} was requeued without a delivery", seq.0));
        }
        let failed = requeue.failures - row.attributes.failures;
        if failed != u32::from(requeue.failure.is_some()) {
            done.violation("AS-ASKED", format!("{failed} failures of item {}: {:?}", seq.0, requeue.failure));
        }
        self.remember_failure(seq, requeue.failure.as_ref());
        row.state = requeue.state;
        row.key.rank = requeue.rank;
        row.attributes.deliveries = requeue.deliveries;
        row.attributes.failures = requeue.failures;
        if let Some(metadata) = &requeue.metadata {
            row.body.metadata = Bytes::copy_from_slice(metadata);
        }
        done.topics.insert(row.topic);
        self.put(row);
        done.changes.push(Change::Requeued(requeue.clone()));
    }

    fn dead_letter(&mut self, letter: &DeadLetter, done: &mut AppliedBatch) {
        let seq = letter.seq;
        done.items.insert(seq);
        let Some(mut row) = self.take(seq) else {
            return done.violation("CONSERVATION", format!("dead letter {} was no item", seq.0));
        };
        self.remember_failure(seq, Some(&letter.failure));
        row.attributes.deliveries = letter.deliveries;
        row.attributes.failures = letter.failures;
        if let Some(metadata) = &letter.metadata {
            row.body.metadata = Bytes::copy_from_slice(metadata);
        }
        if let Some(entry) = self.topics.get_mut(&row.topic) {
            entry.actual.dead += 1;
        }
        done.topics.insert(row.topic);
        self.retain_until(letter.expires_at, seq);
        self.dead.insert(seq, (row, letter.clone()));
        done.changes.push(Change::DeadLettered(letter.clone()));
    }

    /// The last ones count.
    fn remember_failure(&mut self, seq: Seq, failure: Option<&Failure>) {
        if let Some(failure) = failure {
            let failures = self.failures.entry(seq).or_default();
            failures.insert(0, failure.clone());
            failures.truncate(Failure::KEPT);
        }
    }

    fn delete_dead_letter(&mut self, seq: Seq, batch: &Batch, done: &mut AppliedBatch) {
        let Some((row, letter)) = self.dead.remove(&seq) else {
            let what = format!("dead letter {} was deleted and is missing", seq.0);
            return done.violation("CONSERVATION", what);
        };
        self.failures.remove(&seq);
        self.retention.remove(&(letter.expires_at, seq));
        if batch.marks.is_some_and(|marks| marks.time < letter.expires_at) {
            let what = format!("dead letter {} was deleted before {:?}", seq.0, letter.expires_at);
            done.violation("TIME", what);
        }
        if let Some(entry) = self.topics.get_mut(&row.topic) {
            entry.actual.dead -= 1;
        }
        done.topics.insert(row.topic);
        done.changes.push(Change::DeadLetterDeleted(letter));
    }

    fn keep_dead_letter(&mut self, seq: Seq, until: Timestamp, done: &mut AppliedBatch) {
        let Some((_, letter)) = self.dead.get_mut(&seq) else {
            let what = format!("dead letter {} was kept and is missing", seq.0);
            return done.violation("CONSERVATION", what);
        };
        let before = std::mem::replace(&mut letter.expires_at, until);
        self.retention.remove(&(before, seq));
        self.retain_until(until, seq);
    }

    pub(super) fn retain_until(&mut self, until: Timestamp, seq: Seq) {
        if until < Timestamp::MAX {
            self.retention.insert((until, seq));
        }
    }

    fn delete(&mut self, seq: Seq, done: &mut AppliedBatch) {
        match self.take(seq) {
            Some(row) => {
                self.failures.remove(&seq);
                done.changes.push(Change::Deleted(row));
            }
            None => done.violation("CONSERVATION", format!("item {} was deleted and is missing", seq.0)),
        }
        done.items.insert(seq);
    }

    fn remember(&mut self, batch: &Batch, done: &mut AppliedBatch) {
        for DedupeEntry { generation, hash, answer } in &batch.dedupes {
            match self.generations.get_mut(generation) {
                Some(keys) => {
                    let at = batch.marks.map_or(self.fence.marks.time, |marks| marks.time);
                    keys.insert(*hash, (at, answer.clone()));
                }
                None => {
                    let what = format!("dedupe generation {generation} is missing");
                    done.violation("IDEMPOTENT-ENQUEUE", what);
                }
            }
        }
    }

    /// Dead letters of a topic are deleted that memory has forgotten: nothing of it is unfolded.
    fn lose_dormant(&mut self, topic: TopicId, losses: i64, done: &mut AppliedBatch) {
        done.topics.insert(topic);
        if self.is_unfolded(topic) {
            done.violation("CONSERVATION", format!("dormant topic {} has deltas", topic.0));
        }
        let Some(entry) = self.topics.get_mut(&topic) else {
            return done.violation("CONSERVATION", format!("dormant topic {} is missing", topic.0));
        };
        entry.counts.dead -= losses;
        if entry.counts.dead == 0 {
            if entry.actual != TopicCounts::default() {
                let what = format!("{} was dropped with {:?}", entry.name, entry.actual);
                done.violation("CONSERVATION", what);
            }
            self.topics.remove(&topic);
            done.dormant_dropped += 1;
        }
    }

    fn count(&mut self, batch: &Batch, removed_dormant: &RemovedDormant, done: &mut AppliedBatch) {
        for topic in &batch.drop_topics {
            match self.topics.remove(topic) {
                Some(entry) if entry.actual == TopicCounts::default() => {}
                Some(entry) => {
                    let what = format!("{} was dropped with {:?}", entry.name, entry.actual);
                    done.violation("CONSERVATION", what);
                }
                None => done.violation("CONSERVATION", format!("topic {} was dropped twice", topic.0)),
            }
        }
        for (topic, losses) in &batch.dormant_losses {
            self.lose_dormant(*topic, *losses, done);
        }
        if !batch.count_deltas.is_empty() {
            self.deltas.insert(batch.number, batch.count_deltas.clone());
            done.topics.extend(batch.count_deltas.iter().map(|(topic, _)| *topic));
        }
        self.count_tallies(batch, done);
        self.forget_topics(batch, removed_dormant, done);
        self.check_totals(batch, done);
        for (topic, counts, _) in &batch.folds {
            done.topics.insert(*topic);
            match self.topics.get_mut(topic) {
                Some(entry) => (entry.counts, entry.folded) = (*counts, batch.number),
                None => {
                    let what = format!("the counts of topic {} were folded, and it is missing", topic.0);
                    done.violation("CONSERVATION", what);
                }
            }
        }
        if let Some(range) = &batch.drop_deltas {
            if let Some(first) =
                self.deltas.keys().chain(self.tallies.keys()).min().filter(|first| **first < range.start)
            {
                let what = format!("the deltas of batch {first} are never deleted: {range:?} are");
                done.violation("CONSERVATION", what);
            }
            self.tallies.retain(|number, _| !range.contains(number));
            let gone: BTreeMap<_, _> = self.deltas.extract_if(range.clone(), |_, _| true).collect();
            done.topics.extend(gone.into_values().flatten().map(|(topic, _)| topic));
        }
    }
}
