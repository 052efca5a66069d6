//! Undoes a batch that did not happen: what was in it waits again, or is refused. And what is left of a
//! shard that is lost.

use std::time::Duration;

use forebay_types::{Monotonic, Reason, Refusal, Seq, TopicId, TopicName};

use crate::{
    planted::{Bug, on},
    shard::{
        OwnedShard, budget,
        in_flight::{InFlight, Planned, PlannedPage},
        topics::{NamedTopic, TopicState},
        work::{SettleKind, SettleRequest, ShardEnqueue, ShardLease},
    },
};

/// How long enqueues are refused after the disk was full.
const DISK_FULL_PAUSE: Duration = Duration::from_secs(1);

/// What a batch that did not happen means to callers.
pub(crate) struct Undone {
    /// Polls that wait again: nothing was handed to them.
    pub handoffs_cancelled: Vec<u64>,
    /// What is refused of the batch.
    pub refused: Vec<Planned>,
    /// What is refused of the enqueues that waited behind it.
    pub refused_waiting: Vec<ShardEnqueue>,
    /// With which words.
    pub refusal: Refusal,
    /// Topics whose windows were read on.
    pub fetched: Vec<TopicName>,
}

/// What is left of a shard that was lost.
pub(crate) struct Abandoned {
    /// The fence's epoch.
    pub epoch: u64,
    /// Its topics.
    pub topics: Vec<NamedTopic>,
    /// What the batch in flight was to do.
    pub in_flight: Vec<Planned>,
    /// Settlements that waited for a batch, or for an item's location.
    pub settles: Vec<SettleRequest>,
    /// Leases that waited.
    pub leases: Vec<ShardLease>,
    /// Enqueues that waited.
    pub enqueues: Vec<ShardEnqueue>,
}

impl OwnedShard {
    /// One of the batch's rows can't be stored. The next batch is half as long, until the row is alone and is
    /// refused. `bad`: the items that can't be stored, where the batch must not be cut.
    pub fn unstorable(&mut self, why: &str, bad: &[Seq]) -> Option<Undone> {
        let mut batch = self.in_flight.take()?;
        let rows = batch.rows;
        let id = self.id;
        tracing::warn!(
            shard.id = id.0,
            rows,
            why,
            "the database refused a row of a batch of shard {id}; isolating it"
        );
        let message = format!("the database cannot store this item: {why}");
        let refusal = Refusal::new(Reason::InvalidField, message);
        let alone = rows <= 1 || batch.only().is_some_and(Planned::is_unit);
        if !bad.is_empty() {
            // The call is one unit: it is stored without them, and their refusal with it.
            batch.planned.iter_mut().for_each(|planned| refuse_items(planned, bad, &refusal));
            let handoffs_cancelled = self.requeue(batch);
            return Some(self.undone(handoffs_cancelled, Vec::new(), refusal));
        }
        if !alone && !on(Bug::PoisonFailsAll) {
            self.rows_max = Some(rows / 2);
            let handoffs_cancelled = self.requeue(batch);
            return Some(self.undone(handoffs_cancelled, Vec::new(), refusal));
        }
        self.rows_max = None;
        self.put_back_page(batch.page);
        Some(self.undone(Vec::new(), batch.planned, refusal))
    }

    /// The disk is full: enqueues are refused, the rest is tried again without them.
    pub fn disk_full(&mut self, at: Monotonic) -> Option<Undone> {
        let mut batch = self.in_flight.take()?;
        self.budget.set_disk_full(at.plus(DISK_FULL_PAUSE));
        let (refused, rest): (Vec<Planned>, Vec<Planned>) =
            batch.planned.into_iter().partition(|planned| matches!(planned, Planned::Enqueue { .. }));
        batch.planned = rest;
        let handoffs_cancelled = self.requeue(batch);
        let refused_waiting = self.enqueues.drain();
        refused_waiting.iter().for_each(|part| self.free(part));
        let mut undone = self.undone(handoffs_cancelled, refused, budget::disk_full(self.id));
        undone.refused_waiting = refused_waiting;
        Some(undone)
    }

    /// Releases what is refused, and uses what was read while the batch was in flight.
    fn undone(
        &mut self,
        handoffs_cancelled: Vec<u64>,
        mut refused: Vec<Planned>,
        refusal: Refusal,
    ) -> Undone {
        for planned in &mut refused {
            match planned {
                Planned::Enqueue { part, .. } => self.free(part),
                Planned::Lease { part, .. } => self.unreserve(part.items.clone()),
                Planned::HandOff { .. }
                | Planned::Settle(_)
                | Planned::Restore(_)
                | Planned::MoveLease(_) => {}
            }
        }
        self.topics.void_reads();
        let fetched = self.apply_prefetches();
        self.debug_check();
        Undone { handoffs_cancelled, refused, refused_waiting: Vec::new(), refusal, fetched }
    }

    /// Puts everything that was in a batch back where it waited. Returns the polls that were to be handed
    /// something.
    fn requeue(&mut self, batch: InFlight) -> Vec<u64> {
        let mut handoffs = Vec::new();
        for planned in batch.planned.into_iter().rev() {
            match planned {
                Planned::Enqueue { part, .. } => self.enqueues.put_back(part),
                Planned::Lease { part, .. } => self.leasing.put_back(part),
                // Leases that timed out are found again by themselves.
                Planned::Settle(settle) if matches!(settle.request.kind, SettleKind::LeaseTimeout) => {}
                Planned::Settle(settle) => self.settles.put_back(settle.request),
                Planned::Restore(reserved) => self.restores.put_back(self.restore_of(*reserved)),
                Planned::HandOff { part, .. } => handoffs.push(part.poll),
                Planned::MoveLease(_) => {}
            }
        }
        self.put_back_page(batch.page);
        handoffs
    }

    fn put_back_page(&mut self, page: Option<PlannedPage>) {
        if let Some(PlannedPage { page, .. }) = page {
            self.sweeps.put_back(page);
        }
    }

    /// The shard is lost. Returns everything that waited for it.
    pub fn abandon(mut self) -> Abandoned {
        let waiting = self.keys.take_waiting();
        let looked_up = self.keys.take_lookups();
        Abandoned {
            epoch: self.tenure.epoch,
            topics: self.topics.iter().map(forgotten).collect(),
            in_flight: self.in_flight.take().map(|batch| batch.planned).unwrap_or_default(),
            settles: self.settles.drain().into_iter().chain(self.locates.take()).collect(),
            leases: self.leasing.drain().into_iter().chain(self.awaiting_bodies.into_values()).collect(),
            enqueues: self.enqueues.drain().into_iter().chain(waiting).chain(looked_up).collect(),
        }
    }
}

fn forgotten((id, topic): (TopicId, &TopicState)) -> NamedTopic {
    NamedTopic { id, name: topic.name.clone() }
}

/// Items with these numbers are not to be stored.
fn refuse_items(planned: &mut Planned, bad: &[Seq], refusal: &Refusal) {
    let Planned::Enqueue { part, results } = planned else { return };
    for (item, result) in part.items.iter_mut().zip(results) {
        if result.as_ref().is_ok_and(|stored| bad.contains(&stored.key.seq)) {
            item.refused = Some(refusal.clone());
        }
    }
}
