//! Applies a resolved batch: what it changed in memory, whom it answers; or undoes what was noted for it.

use std::time::Duration;

use forebay_store::Sweep;
use forebay_types::{ItemId, Monotonic, Reason, Refusal, Seq, State, Timestamp, TopicId};

use crate::{
    Enqueued,
    core::{Core, NodeTopic, RETRY, trusted_until},
    form::{Formed, FormedPage, InFlight, Settlement, Stored, entry_of},
    op::{EnqueuePart, SettleKind},
    planted::{Bug, on},
    settle::Effect,
    shard::{Owned, TopicState},
    window::{Entry, Window},
};

/// How long enqueues are refused after the disk was full.
const DISK_PAUSE: Duration = Duration::from_secs(1);

/// Counts of one batch, told to the metrics at once: finding a counter takes longer than most of what is counted.
#[derive(Default)]
struct Tally(Vec<(&'static str, u64)>);

impl Tally {
    fn count(&mut self, counter: &'static str) {
        match self.0.iter_mut().find(|(name, _)| *name == counter) {
            Some((_, count)) => *count += 1,
            None => self.0.push((counter, 1)),
        }
    }

    fn tell(self) {
        for (counter, count) in self.0 {
            metrics::counter!(counter).increment(count);
        }
    }
}

impl Core {
    /// The batch under way is committed: it counts from now on.
    pub fn committed(&mut self, place: usize, last: u64) {
        let at = self.time.monotonic();
        let budget = self.index_budget();
        let shard = &mut self.shards[place];
        let Some(owned) = &mut shard.owned else { return };
        let Some(mut batch) = owned.in_flight.take() else { return };
        let took = at.since(batch.sent_at);
        shard.breaker.committed(at, took);
        metrics::histogram!("forebay_commit_seconds", "shard" => shard.id.to_string())
            .record(took.as_secs_f64());
        owned.batch = last;
        owned.stamp = batch.stamp;
        let recorded = owned.shard_lists.take().is_some();
        owned.commit_took = took;
        owned.trusted_until = owned.trusted_until.max(trusted_until(&self.settings, batch.sent_at));
        // After a row that can't be stored, batches grow again with each one that is committed.
        let whole = self.settings.batch_rows;
        owned.split = owned.split.map(|split| split * 2).filter(|split| *split < whole);
        let formed = std::mem::take(&mut batch.formed);
        self.apply_topics(place, &batch);
        if let Some(owned) = &mut self.shards[place].owned {
            owned.apply_counts(&batch, at);
        }
        // Deliveries end before others begin: an extended one does both, and what begins is then known as leased.
        let (ended, rest): (Vec<Formed>, Vec<Formed>) =
            formed.into_iter().partition(|formed| matches!(formed, Formed::Settled(_) | Formed::Moved(_)));
        let mut tally = Tally::default();
        for formed in ended {
            self.apply(place, formed, &mut tally);
        }
        if let Some(owned) = &mut self.shards[place].owned {
            owned.leases.begin(batch.number, std::mem::take(&mut batch.leases));
        }
        for formed in rest {
            self.apply(place, formed, &mut tally);
        }
        tally.tell();
        let Some(owned) = &mut self.shards[place].owned else { return };
        owned.apply_sweeps(&batch);
        if let Some(page) = batch.page.take() {
            owned.apply_page(page, at);
        }
        owned.shed(budget);
        self.end_reads(place);
        if recorded {
            // Keys whose earlier home this shard is have waited for that.
            (0..self.shards.len()).for_each(|place| self.unblock(place));
        }
    }

    /// Topics that the batch made or dropped.
    fn apply_topics(&mut self, place: usize, batch: &InFlight) {
        for row in &batch.new_topics {
            if let Some(owned) = &mut self.shards[place].owned {
                let topic = TopicState::new(row.name.clone(), row.counts, Window::complete());
                owned.names.insert(row.name.clone(), row.id);
                owned.topics.insert(row.id, topic);
            }
            let topic: &mut NodeTopic = self.topics.entry(row.name.clone()).or_default();
            if topic.parts.is_empty() {
                *self.topics_of.entry(row.name.namespace.clone()).or_default() += 1;
            }
            topic.parts.push((place, row.id));
        }
        for id in &batch.dropped {
            let Some(owned) = &mut self.shards[place].owned else { return };
            let Some(topic) = owned.topics.remove(id) else { continue };
            owned.names.remove(&topic.name);
            self.forget_topic(place, *id, &topic.name);
        }
    }

    fn apply(&mut self, place: usize, formed: Formed, tally: &mut Tally) {
        match formed {
            Formed::Enqueued { part, results } => self.enqueued(place, part, results),
            Formed::Settled(settlement) => self.settled(place, *settlement, tally),
            Formed::Leased { part, handed } => {
                let Some(owned) = &mut self.shards[place].owned else { return };
                for picked in &part.picked {
                    owned.unreserve(picked.topic, picked.key.seq);
                    owned.touch(picked.topic, picked.key.seq);
                    owned.note(picked.topic);
                }
                if !on(Bug::LeaseBeforeCommit) {
                    self.part_leased(place, part, handed);
                }
            }
            Formed::Met { part, handed } => self.part_leased(place, part, handed),
            Formed::Moved(seq) => {
                if let Some(owned) = &mut self.shards[place].owned {
                    owned.leases.close(seq);
                }
            }
            Formed::Restored(picked) => {
                if let Some(owned) = &mut self.shards[place].owned {
                    owned.touch(picked.topic, picked.key.seq);
                    owned.with_window(picked.topic, |window| window.add(picked.key, picked.entry));
                }
            }
        }
    }

    fn enqueued(&mut self, place: usize, part: EnqueuePart, results: Vec<Result<Stored, Refusal>>) {
        let shard = self.shards[place].id;
        let mut count = 0;
        for (item, result) in part.items.iter().zip(results) {
            let answer = match result {
                Ok(Stored { topic, key, state, met }) => {
                    count += 1;
                    if let Some(owned) = &mut self.shards[place].owned {
                        if let Some(topic) = owned.topics.get_mut(&topic) {
                            topic.saw_body(item.body.bytes());
                        }
                        if state == State::Ready {
                            owned.with_window(topic, |window| {
                                // An entry that stays in the store alone need not be made.
                                if window.wants(key) && (!met || on(Bug::MetStaysReady)) {
                                    window.add(key, entry_of(item))
                                } else {
                                    window.touch(key.seq)
                                }
                            });
                        }
                        owned.note(topic);
                    }
                    Ok(Enqueued { id: ItemId { shard, seq: key.seq }, duplicate: false })
                }
                Err(refusal) => Err(refusal),
            };
            self.enqueue_done(part.call, item.index, answer);
        }
        metrics::counter!("forebay_enqueued_total").increment(count);
        self.part_done(place, &part);
    }

    fn settled(&mut self, place: usize, settlement: Settlement, tally: &mut Tally) {
        let Settlement { settle, lease, effect } = settlement;
        let Some(owned) = &mut self.shards[place].owned else { return };
        owned.leases.close(lease.seq);
        owned.touch(lease.topic, lease.seq);
        owned.note(lease.topic);
        let counter = match (&settle.kind, &effect) {
            (SettleKind::Ack, _) => "forebay_acked_total",
            (_, Effect::Gone) => "forebay_expired_total",
            (_, Effect::Dead) => "forebay_dead_lettered_total",
            (SettleKind::Lapse, _) => "forebay_lapsed_total",
            (SettleKind::Extend { .. }, _) => "forebay_extended_total",
            _ => "forebay_nacked_total",
        };
        tally.count(counter);
        let mut deadline = None;
        match effect {
            Effect::Gone | Effect::Dead | Effect::Scheduled => {}
            Effect::Extended(end) => deadline = Some(end),
            Effect::Ready(key, entry) => {
                owned.with_window(lease.topic, |window| window.add(key, entry));
            }
        }
        self.settle_done(&settle, deadline);
    }

    /// One of the batch's rows can't be stored, and nothing of the batch was. The next batch is half as long,
    /// until the row stands alone and is refused.
    pub fn poisoned(&mut self, place: usize, why: &str, bad: &[Seq]) {
        let id = self.shards[place].id;
        let Some(owned) = &mut self.shards[place].owned else { return };
        let Some(mut batch) = owned.in_flight.take() else { return };
        let rows = batch.rows;
        tracing::warn!(shard.id = id.0, rows, why, "the database refused a row of a batch");
        metrics::counter!("forebay_poisoned_batches_total").increment(1);
        let refusal =
            Refusal::new(Reason::InvalidField, format!("the database does not take this item: {why}"));
        if !bad.is_empty() {
            // The call is one unit: it is stored without them, and their refusal with it.
            for formed in &mut batch.formed {
                formed.refuse_items(bad, &refusal);
            }
            self.take_apart(place, batch, None);
            return;
        }
        let alone = rows <= 1 || batch.only().is_some_and(Formed::is_unit);
        if !alone && !on(Bug::PoisonFailsAll) {
            self.take_apart(place, batch, Some(rows / 2));
            return;
        }
        owned.split = None;
        self.refuse_batch(place, batch, &refusal);
        self.end_reads(place);
    }

    /// No room: the enqueues of the batch are refused, the rest is tried again without them.
    pub fn disk_full(&mut self, place: usize) {
        let at = self.time.monotonic();
        let id = self.shards[place].id;
        let Some(owned) = &mut self.shards[place].owned else { return };
        let Some(mut batch) = owned.in_flight.take() else { return };
        owned.disk_full_until = at.plus(DISK_PAUSE);
        let refusal =
            Refusal::new(Reason::DiskFull, format!("the disk of shard {id} is full")).retry_after(RETRY);
        let (enqueues, rest): (Vec<Formed>, Vec<Formed>) =
            batch.formed.drain(..).partition(|formed| matches!(formed, Formed::Enqueued { .. }));
        batch.formed = rest;
        self.take_apart(place, batch, None);
        for formed in enqueues {
            self.refuse(place, formed, &refusal);
        }
        let waiting =
            self.shards[place].owned.as_mut().map(|owned| owned.enqueues.drain()).unwrap_or_default();
        for part in waiting {
            self.refuse_enqueue(place, &part, &refusal);
        }
    }

    /// Puts everything that was in a batch back where it waited.
    fn take_apart(&mut self, place: usize, batch: InFlight, split: Option<usize>) {
        let Some(owned) = &mut self.shards[place].owned else { return };
        owned.split = split.or(owned.split);
        let mut unmet = Vec::new();
        for formed in batch.formed.into_iter().rev() {
            match formed {
                Formed::Enqueued { part, .. } => owned.enqueues.unpop(part),
                Formed::Leased { part, .. } => owned.lease_parts.push_front(part),
                // Leases that ran out are found again by themselves.
                Formed::Settled(of) if matches!(of.settle.kind, SettleKind::Lapse) => {}
                Formed::Settled(of) => owned.settles.push_front(of.settle),
                Formed::Restored(picked) => owned.restores.push(picked),
                Formed::Met { part, .. } => unmet.push(part.poll),
                Formed::Moved(_) => {}
            }
        }
        if let Some(FormedPage { page, .. }) = batch.page {
            owned.page = Some(page);
        }
        owned.void_reads();
        self.end_reads(place);
        unmet.into_iter().for_each(|poll| self.unmet(poll));
    }

    /// Refuses everything that was in a batch which did not happen.
    fn refuse_batch(&mut self, place: usize, batch: InFlight, refusal: &Refusal) {
        if let Some(owned) = &mut self.shards[place].owned {
            if let Some(FormedPage { page, .. }) = batch.page {
                owned.page = Some(page);
            }
            owned.void_reads();
        }
        for formed in batch.formed {
            self.refuse(place, formed, refusal);
        }
    }

    fn refuse(&mut self, place: usize, formed: Formed, refusal: &Refusal) {
        match formed {
            Formed::Enqueued { part, .. } => self.refuse_enqueue(place, &part, refusal),
            Formed::Leased { part, .. } => self.part_failed(place, part),
            Formed::Settled(of) => self.settle_refused(&of.settle, refusal.clone()),
            Formed::Met { part, .. } => self.unmet(part.poll),
            Formed::Restored(_) | Formed::Moved(_) => {}
        }
    }

    fn refuse_enqueue(&mut self, place: usize, part: &EnqueuePart, refusal: &Refusal) {
        for item in &part.items {
            self.enqueue_done(part.call, item.index, Err(refusal.clone()));
        }
        self.part_done(place, part);
    }

    /// The shard is lost: everything that waited for it is answered, or goes elsewhere.
    pub fn fail_everything(&mut self, place: usize, owned: &mut Owned, sent: bool) {
        let refusal = self.shards[place].refusal();
        let sent = sent && !on(Bug::UnknownAsFailed);
        let unknown = Refusal::new(
            Reason::OutcomeUnknown,
            "the shard changed its owner while this was being committed: it may or may not have happened",
        )
        .retry_after(RETRY);
        if let Some(batch) = owned.in_flight.take() {
            for formed in batch.formed {
                match formed {
                    Formed::Enqueued { part, .. } if sent => {
                        for item in &part.items {
                            self.enqueue_done(part.call, item.index, Err(unknown.clone()));
                        }
                    }
                    Formed::Enqueued { part, .. } => self.place_again(part, &refusal),
                    Formed::Leased { part, .. } => self.part_failed(place, part),
                    Formed::Settled(of) => {
                        let refusal = if sent { &unknown } else { &refusal };
                        self.settle_refused(&of.settle, refusal.clone());
                    }
                    Formed::Met { part, .. } => self.unmet(part.poll),
                    Formed::Restored(_) | Formed::Moved(_) => {}
                }
            }
        }
        for settle in owned.settles.drain(..) {
            self.settle_refused(&settle, refusal.clone());
        }
        let awaiting = std::mem::take(&mut owned.awaiting).into_values().collect::<Vec<_>>();
        for part in owned.lease_parts.drain(..).chain(awaiting) {
            self.part_failed(place, part);
        }
        let looking =
            std::mem::take(&mut owned.keyed.looking).into_values().map(|look| look.part).collect::<Vec<_>>();
        for part in owned.enqueues.drain().into_iter().chain(owned.keyed.blocked.drain(..)).chain(looking) {
            self.place_again(part, &refusal);
        }
    }
}

impl Formed {
    /// Items with these numbers are not to be stored.
    fn refuse_items(&mut self, bad: &[Seq], refusal: &Refusal) {
        let Self::Enqueued { part, results } = self else { return };
        for (item, result) in part.items.iter_mut().zip(results) {
            if result.as_ref().is_ok_and(|stored| bad.contains(&stored.key.seq)) {
                item.refused = Some(refusal.clone());
            }
        }
    }

    /// It can't be cut any further.
    fn is_unit(&self) -> bool {
        match self {
            Self::Enqueued { part, .. } => part.request.is_some() || part.items.len() == 1,
            Self::Leased { .. }
            | Self::Met { .. }
            | Self::Settled(_)
            | Self::Restored(_)
            | Self::Moved(_) => true,
        }
    }
}

impl Owned {
    fn apply_sweeps(&mut self, batch: &InFlight) {
        for (sweep, time) in &batch.lowered {
            let sweeper = match sweep {
                Sweep::Due => &mut self.due,
                Sweep::Expiry => &mut self.expiry,
            };
            sweeper.checkpoint = *time;
        }
        if batch.schedule_min < Timestamp::MAX {
            self.due.added(batch.schedule_min);
        }
        if batch.expiry_min < Timestamp::MAX {
            self.expiry.added(batch.expiry_min);
        }
    }

    fn apply_page(&mut self, formed: FormedPage, at: Monotonic) {
        let FormedPage { page, done, checkpoint } = formed;
        let left_some = done.contains(&false);
        let mut moved = 0;
        for (row, _) in page.rows.into_iter().zip(done).filter(|(_, done)| *done) {
            moved += 1;
            let topic: TopicId = row.topic;
            let seq = row.item.key.seq;
            match page.sweep {
                Sweep::Due => {
                    self.touch(topic, seq);
                    let (key, entry) = Entry::from_row(row.item);
                    self.with_window(topic, |window| window.add(key, entry));
                }
                Sweep::Expiry if self.leases.get(seq).is_some() => {}
                Sweep::Expiry => {
                    self.touch(topic, seq);
                    self.with_window(topic, |window| window.remove(row.item.key));
                    metrics::counter!("forebay_expired_total").increment(1);
                }
            }
        }
        let sweeper = match page.sweep {
            Sweep::Due => &mut self.due,
            Sweep::Expiry => &mut self.expiry,
        };
        sweeper.committed(checkpoint, moved, left_some, at);
    }

    /// What the reads under way saw of the last batch was undone.
    fn void_reads(&mut self) {
        for topic in self.topics.values_mut() {
            topic.window.void_read();
        }
    }
}
