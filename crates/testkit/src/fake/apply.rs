//! How a batch changes the rows, and what an engine must never ask for.
//!
//! A SQL store lets much of this pass unseen (a DELETE that finds no row is no error), so the fake looks
//! harder: whatever a right engine can't do is written down as a violation, and the run fails for it.

use std::collections::BTreeSet;

use bytes::Bytes;
use forebay_store::{
    Batch, DeadLetter, ItemRow, LeaseChange, LeaseEntry, LeaseRow, Requeue, Sweep, TopicCounts,
};
use forebay_types::{DeliveryPolicy, Seq, State, Timestamp, TopicId};

use super::{
    Tables,
    tables::{TopicEntry, add},
};

/// One thing that a committed batch changed, for the checks that follow a run.
#[derive(Debug, Clone)]
pub enum Change {
    /// An item's row came into being.
    Inserted(ItemRow),
    /// A delivery began.
    Leased(LeaseEntry),
    /// A delivery goes on in another row of the log, perhaps with another deadline.
    Moved(LeaseEntry),
    /// A delivery is over.
    Closed(LeaseEntry),
    /// A scheduled item became ready.
    Promoted(Seq),
    /// An item went back.
    Requeued(Requeue),
    /// An item went to the dead letters.
    Buried(DeadLetter),
    /// An item's row went; what it was.
    Deleted(ItemRow),
}

/// What is wrong with a batch: the invariant and a sentence.
pub type Wrong = (&'static str, String);

/// The result of a batch: what it changed, and what was wrong with it.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub changes: Vec<Change>,
    pub wrong: Vec<Wrong>,
    touched: BTreeSet<Seq>,
    topics: BTreeSet<TopicId>,
    opened: Vec<LeaseEntry>,
    closed: Vec<LeaseEntry>,
}

impl Applied {
    fn wrong(&mut self, invariant: &'static str, what: impl Into<String>) {
        self.wrong.push((invariant, what.into()));
    }
}

impl Tables {
    /// Applies a batch in the order of its fields, the fence last.
    pub(super) fn apply(&mut self, batch: &Batch) -> Applied {
        let mut done = Applied::default();
        self.marks(batch, &mut done);
        for topic in &batch.new_topics {
            let entry = TopicEntry {
                name: topic.name.clone(),
                counts: TopicCounts::default(),
                folded: 0,
                actual: TopicCounts::default(),
            };
            if self.topics.values().any(|other| other.name == topic.name) {
                done.wrong("CONSERVATION", format!("topic {} made twice", topic.name));
            }
            if self.topics.insert(topic.id, entry).is_some() {
                done.wrong("CONSERVATION", format!("topic number {} given out twice", topic.id.0));
            }
            done.topics.insert(topic.id);
        }
        self.insert(batch, &mut done);
        self.lease(batch, &mut done);
        for (at, seq) in &batch.promotes {
            self.promote(*at, *seq, &mut done);
        }
        for requeue in &batch.requeues {
            self.requeue(requeue, &mut done);
        }
        for letter in &batch.dead_letters {
            self.bury(letter, &mut done);
        }
        for seq in &batch.deletes {
            match self.take(*seq) {
                Some(row) => done.changes.push(Change::Deleted(row)),
                None => done.wrong("CONSERVATION", format!("delete of item {} that is not there", seq.0)),
            }
            done.touched.insert(*seq);
        }
        for (at, seq) in &batch.schedule_deletes {
            if !self.schedule.remove(&(*at, *seq)) {
                done.wrong("CONSERVATION", format!("unschedule of item {} that does not wait", seq.0));
            }
            done.touched.insert(*seq);
        }
        for (at, seq) in &batch.expiry_deletes {
            // One that is gone already is no error: the expiry sweep took a leased item's row.
            self.expiry.remove(&(*at, *seq));
            done.touched.insert(*seq);
        }
        for row in &batch.lease_changes {
            self.change_lease(row, &mut done);
        }
        self.settle_leases(&mut done);
        for (generation, hash, answer) in &batch.dedupes {
            match self.generations.get_mut(generation) {
                Some(keys) => {
                    let at = batch.marks.map_or(self.fence.marks.time, |marks| marks.time);
                    keys.insert(*hash, (at, answer.clone()));
                }
                None => done.wrong("IDEMPOTENT-ENQUEUE", format!("no dedupe generation {generation}")),
            }
        }
        self.count(batch, &mut done);
        if let Some(lists) = &batch.topology_history {
            self.topology_history.clone_from(lists);
        }
        for (sweep, at) in &batch.checkpoints {
            self.checkpoints.insert(*sweep, *at);
        }
        self.look(&mut done);
        self.fence.batch = batch.number;
        if let Some(marks) = batch.marks {
            self.fence.marks = marks;
        }
        done
    }

    fn marks(&self, batch: &Batch, done: &mut Applied) {
        let old = self.fence.marks;
        let Some(new) = batch.marks else { return };
        let back = new.seq < old.seq || new.topic < old.topic || new.rank < old.rank || new.time < old.time;
        if back {
            done.wrong("ONE-OWNER", format!("the marks goes back from {old:?} to {new:?}"));
        }
    }

    fn insert(&mut self, batch: &Batch, done: &mut Applied) {
        let new = batch.marks.unwrap_or(self.fence.marks);
        for row in &batch.inserts {
            let seq = row.key.seq;
            let comes_back = row.policy == DeliveryPolicy::AtMostOnce && row.deliveries > 0;
            if self.items.contains_key(&seq) || self.dead.contains_key(&seq) {
                done.wrong("NO-PHANTOM", format!("item {} inserted twice", seq.0));
            }
            if !comes_back && seq <= self.fence.marks.seq {
                done.wrong("NO-PHANTOM", format!("number {} of an item given out before", seq.0));
            }
            if seq > new.seq {
                done.wrong("NO-PHANTOM", format!("item {} above the marks's {}", seq.0, new.seq.0));
            }
            // The rank of an item that became due on its way is its due time.
            let highest = new.rank.max(new.time.as_micros());
            if !comes_back && row.state == State::Ready && row.key.rank > highest {
                done.wrong("PRIORITY", format!("rank {} above the marks's {highest}", row.key.rank));
            }
            if !self.topics.contains_key(&row.topic) {
                done.wrong(
                    "CONSERVATION",
                    format!("item {} of topic {} that is not there", seq.0, row.topic.0),
                );
            }
            if let Some(end) = row.expires_at {
                self.expiry.insert((end, seq));
            }
            self.put(row.clone());
            done.touched.insert(seq);
            done.topics.insert(row.topic);
            done.changes.push(Change::Inserted(row.clone()));
        }
    }

    fn lease(&mut self, batch: &Batch, done: &mut Applied) {
        if batch.leases.is_empty() {
            return;
        }
        done.opened.extend(batch.leases.iter().cloned());
        let open = vec![true; batch.leases.len()];
        let row = LeaseRow { id: batch.number, entries: batch.leases.clone(), open };
        if self.leases.insert(row.id, row).is_some() {
            done.wrong("LEASE-EXCLUSIVE", format!("lease row {} written twice", batch.number));
        }
    }

    fn promote(&mut self, at: Timestamp, seq: Seq, done: &mut Applied) {
        done.touched.insert(seq);
        if !self.schedule.remove(&(at, seq)) {
            done.wrong("CONSERVATION", format!("promotion of item {} that does not wait", seq.0));
        }
        match self.take(seq) {
            Some(mut row) => {
                if row.state != State::Scheduled {
                    done.wrong("CONSERVATION", format!("promotion of item {} that is ready", seq.0));
                }
                row.state = State::Ready;
                done.topics.insert(row.topic);
                self.put(row);
                done.changes.push(Change::Promoted(seq));
            }
            None => done.wrong("CONSERVATION", format!("promotion of item {} that is not there", seq.0)),
        }
    }

    fn requeue(&mut self, requeue: &Requeue, done: &mut Applied) {
        let seq = requeue.seq;
        done.touched.insert(seq);
        let Some(mut row) = self.take(seq) else {
            return done.wrong("CONSERVATION", format!("requeue of item {} that is not there", seq.0));
        };
        if row.state != State::Ready {
            done.wrong("CONSERVATION", format!("requeue of item {} that was not delivered", seq.0));
        }
        row.state = requeue.state;
        row.key.rank = requeue.rank;
        row.deliveries = requeue.deliveries;
        row.failures = requeue.failures;
        if let Some(metadata) = &requeue.metadata {
            row.body.metadata = Bytes::copy_from_slice(metadata);
        }
        done.topics.insert(row.topic);
        self.put(row);
        done.changes.push(Change::Requeued(requeue.clone()));
    }

    fn bury(&mut self, letter: &DeadLetter, done: &mut Applied) {
        done.touched.insert(letter.seq);
        let Some(mut row) = self.take(letter.seq) else {
            return done.wrong("CONSERVATION", format!("burial of item {} that is not there", letter.seq.0));
        };
        row.deliveries = letter.deliveries;
        row.failures = letter.failures;
        if let Some(metadata) = &letter.metadata {
            row.body.metadata = Bytes::copy_from_slice(metadata);
        }
        if let Some(entry) = self.topics.get_mut(&row.topic) {
            entry.actual.dead += 1;
        }
        done.topics.insert(row.topic);
        self.dead.insert(letter.seq, (row, letter.clone()));
        done.changes.push(Change::Buried(letter.clone()));
    }

    fn change_lease(&mut self, row: &LeaseChange, done: &mut Applied) {
        let Some(old) = self.leases.get(&row.id) else {
            return done
                .wrong("LEASE-EXCLUSIVE", format!("change of lease row {} that is not there", row.id));
        };
        if row.partly != old.open.contains(&false) {
            done.wrong("LEASE-EXCLUSIVE", format!("lease row {} and its bits don't agree", row.id));
        }
        if !row.open.contains(&true) {
            let open = old.entries.iter().zip(&old.open).filter(|(_, open)| **open);
            done.closed.extend(open.map(|(entry, _)| entry.clone()));
            self.leases.remove(&row.id);
            return;
        }
        if old.open.len() != row.open.len() {
            return done.wrong("LEASE-EXCLUSIVE", format!("lease row {} has other entries now", row.id));
        }
        for (at, entry) in old.entries.iter().enumerate() {
            match (old.open[at], row.open[at]) {
                (true, false) => done.closed.push(entry.clone()),
                (false, true) => {
                    done.wrong.push(("LEASE-EXCLUSIVE", format!("lease of {} opened again", entry.seq.0)));
                }
                _ => {}
            }
        }
        let new = LeaseRow { open: row.open.clone(), ..old.clone() };
        self.leases.insert(row.id, new);
    }

    /// Tells deliveries that began, ended or moved apart, and looks at each.
    fn settle_leases(&self, done: &mut Applied) {
        let same = |one: &LeaseEntry, other: &LeaseEntry| {
            (one.seq, one.nonce, one.delivery) == (other.seq, other.nonce, other.delivery)
        };
        let (opened, closed) = (std::mem::take(&mut done.opened), std::mem::take(&mut done.closed));
        for entry in &opened {
            done.touched.insert(entry.seq);
            let moved = closed.iter().any(|old| same(old, entry));
            done.changes.push(if moved {
                Change::Moved(entry.clone())
            } else {
                Change::Leased(entry.clone())
            });
            let Some(item) = self.items.get(&entry.seq) else {
                done.wrong("LEASE-EXCLUSIVE", format!("lease of item {} that is not there", entry.seq.0));
                continue;
            };
            let told = (entry.topic, entry.priority, entry.rank, entry.expires_at, entry.failures);
            let stored = (item.topic, item.key.priority, item.key.rank, item.expires_at, item.failures);
            if told != stored || entry.max_attempts != item.max_attempts || entry.lease_ms != item.lease_ms {
                done.wrong("LEASE-EXCLUSIVE", format!("lease {entry:?} tells another item than {item:?}"));
            }
            if item.state != State::Ready {
                done.wrong("TIME", format!("lease of item {} that waits for its time", entry.seq.0));
            }
            if entry.delivery <= item.deliveries {
                done.wrong(
                    "LEASE-EXCLUSIVE",
                    format!("delivery {} of item {} again", entry.delivery, entry.seq.0),
                );
            }
            let open = self.leases.values().flat_map(|row| row.entries.iter().zip(&row.open));
            if open.filter(|(other, open)| **open && other.seq == entry.seq).count() > 1 {
                done.wrong("LEASE-EXCLUSIVE", format!("item {} has two open leases", entry.seq.0));
            }
        }
        for entry in closed {
            done.touched.insert(entry.seq);
            if !opened.iter().any(|new| same(new, &entry)) {
                done.changes.push(Change::Closed(entry));
            }
        }
    }

    fn count(&mut self, batch: &Batch, done: &mut Applied) {
        for topic in &batch.drop_topics {
            match self.topics.remove(topic) {
                Some(entry) if entry.actual == TopicCounts::default() => {}
                Some(entry) => {
                    done.wrong("CONSERVATION", format!("{} dropped with {:?}", entry.name, entry.actual));
                }
                None => done.wrong("CONSERVATION", format!("topic {} dropped twice", topic.0)),
            }
        }
        if !batch.count_deltas.is_empty() {
            self.deltas.insert(batch.number, batch.count_deltas.clone());
            done.topics.extend(batch.count_deltas.iter().map(|(topic, _)| *topic));
        }
        for (topic, counts) in &batch.count_folds {
            done.topics.insert(*topic);
            match self.topics.get_mut(topic) {
                Some(entry) => (entry.counts, entry.folded) = (*counts, batch.number),
                None => done.wrong("CONSERVATION", format!("counts of topic {} that is not there", topic.0)),
            }
        }
        if let Some(before) = batch.deltas_before {
            let keep = self.deltas.split_off(&before);
            let gone = std::mem::replace(&mut self.deltas, keep);
            done.topics.extend(gone.into_values().flatten().map(|(topic, _)| topic));
        }
    }

    /// Looks at everything that the batch touched.
    fn look(&self, done: &mut Applied) {
        for topic in done.topics.clone() {
            let Some(entry) = self.topics.get(&topic) else { continue };
            let counted = self.counts(topic);
            if counted != entry.actual {
                let (name, actual) = (&entry.name, entry.actual);
                done.wrong("CONSERVATION", format!("{name} is counted {counted:?}, and has {actual:?}"));
            }
        }
        for sweep in Sweep::ALL {
            let checkpoint = self.checkpoints.get(&sweep).copied().unwrap_or(Timestamp::MIN);
            if let Some((at, seq)) = self.sweep(sweep).first().filter(|(at, _)| *at < checkpoint) {
                let name = sweep.name();
                done.wrong(
                    "CHECKPOINT-SAFE",
                    format!("{name}: item {} at {at:?} lies below {checkpoint:?}", seq.0),
                );
            }
        }
        for seq in done.touched.clone() {
            self.look_at(seq, done);
        }
    }

    fn look_at(&self, seq: Seq, done: &mut Applied) {
        let leased = self.lease_of(seq).is_some();
        let Some(item) = self.items.get(&seq) else {
            let waits = self.schedule.iter().chain(&self.expiry).any(|(_, other)| *other == seq);
            if leased || waits {
                done.wrong("CONSERVATION", format!("item {} is gone, and its rows are not", seq.0));
            }
            return;
        };
        let due = (Timestamp::from_micros(item.key.rank), seq);
        if (item.state == State::Scheduled) != self.schedule.contains(&due) {
            done.wrong("CONSERVATION", format!("item {} and its schedule row don't agree", seq.0));
        }
        if leased && item.state == State::Scheduled {
            done.wrong("LEASE-EXCLUSIVE", format!("item {} waits for its time and is leased", seq.0));
        }
        if let Some(end) = item.expires_at
            && !leased
            && !self.expiry.contains(&(end, seq))
        {
            done.wrong("TIME", format!("item {} would never expire", seq.0));
        }
    }

    fn put(&mut self, row: ItemRow) {
        if let Some(entry) = self.topics.get_mut(&row.topic) {
            add(&mut entry.actual, one(row.state, 1));
        }
        match row.state {
            State::Ready => {
                self.order.insert((row.topic, row.key));
            }
            State::Scheduled => {
                self.schedule.insert((Timestamp::from_micros(row.key.rank), row.key.seq));
            }
        }
        self.items.insert(row.key.seq, row);
    }

    fn take(&mut self, seq: Seq) -> Option<ItemRow> {
        let row = self.items.remove(&seq)?;
        if let Some(entry) = self.topics.get_mut(&row.topic) {
            add(&mut entry.actual, one(row.state, -1));
        }
        self.order.remove(&(row.topic, row.key));
        Some(row)
    }
}

fn one(state: State, by: i64) -> TopicCounts {
    match state {
        State::Ready => TopicCounts { ready: by, ..TopicCounts::default() },
        State::Scheduled => TopicCounts { scheduled: by, ..TopicCounts::default() },
    }
}
