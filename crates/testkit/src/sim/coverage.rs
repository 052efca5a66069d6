//! Which situations the runs met.

use std::collections::{HashMap, HashSet};

use forebay_types::{DeliveryPolicy, Refusal};

use super::{
    check::RunRecord,
    cluster::ClusterCoverage,
    history::{Answer, CallerKnowledge, What},
};
use crate::fake::{Change, StoreCoverage, TakeOverRecord};

/// How often runs met the situations that they must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Calls.
    pub calls: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// The situations at the shards.
    pub shards: StoreCoverage,
    /// Leases that ran out.
    pub ran_out: u64,
    /// Settlements answered LEASE_LOST.
    pub lease_lost: u64,
    /// Items that became dead letters.
    pub dead_letters: u64,
    /// Items that expired.
    pub expired: u64,
    /// Enqueued items that were duplicates.
    pub duplicates: u64,
    /// Members whose outcome was reported as unknown.
    pub told_unknown: u64,
    /// Calls whose answer never arrived.
    pub lost: u64,
    /// Extensions that succeeded.
    pub extended: u64,
    /// Deliveries of at-most-once items.
    pub at_most_once: u64,
    /// New items that were leased in their own batch.
    pub handed_off: u64,
    /// Pages of active topics.
    pub pages: u64,
    /// Processes that stood still and went on.
    pub stalls: u64,
    /// Shards that another process took over meanwhile.
    pub lost_in_stall: u64,
    /// Times for which tasks of one shard stood still.
    pub task_stalls: u64,
    /// Processes that began with another set of shards than the one before.
    pub reshards: u64,
    /// Enqueues answered as duplicates of what a process with another set of shards had stored.
    pub repeated_across: u64,
    /// Shards that one process handed to another.
    pub handed_over: u64,
    /// Calls that one process passed on to another, and that were answered.
    pub forwarded: u64,
    /// Such calls that were done, and whose answer was lost.
    pub forward_lost: u64,
    /// Such calls that did not reach the other process.
    pub forward_unreached: u64,
    /// Processes that were told of other shards while they ran.
    pub told_shards: u64,
    /// Keys that one process found for another one, in a shard that was their home.
    pub found_elsewhere: u64,
    /// The situations of clusters.
    pub cluster: ClusterCoverage,
}

impl Coverage {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.deliveries += other.deliveries;
        self.ran_out += other.ran_out;
        self.lease_lost += other.lease_lost;
        self.dead_letters += other.dead_letters;
        self.expired += other.expired;
        self.duplicates += other.duplicates;
        self.told_unknown += other.told_unknown;
        self.lost += other.lost;
        self.extended += other.extended;
        self.at_most_once += other.at_most_once;
        self.handed_off += other.handed_off;
        self.pages += other.pages;
        self.stalls += other.stalls;
        self.lost_in_stall += other.lost_in_stall;
        self.task_stalls += other.task_stalls;
        self.reshards += other.reshards;
        self.repeated_across += other.repeated_across;
        self.handed_over += other.handed_over;
        self.forwarded += other.forwarded;
        self.forward_lost += other.forward_lost;
        self.forward_unreached += other.forward_unreached;
        self.told_shards += other.told_shards;
        self.found_elsewhere += other.found_elsewhere;
        self.shards.add(&other.shards);
        self.cluster.add(&other.cluster);
    }

    /// The situations that 2,000 runs must meet so often, others in proportion, and these did not.
    pub fn missing(&self, runs: u64) -> Vec<String> {
        let Self { shards, .. } = self;
        let all = [
            ("a take-over with a batch in flight", shards.take_over_in_flight, 100),
            ("an unknown commit that was done", shards.unknown_done, 1_000),
            ("an unknown commit that was not done", shards.unknown - shards.unknown_done, 1_000),
            ("a batch refused by the fence", shards.fenced, 100),
            ("a batch that met a row of a later owner", shards.met_rows, 2),
            ("a batch with a row that cannot be stored", shards.poisoned, 1_000),
            ("a batch split because of such a row", shards.split, 300),
            ("a batch rolled back", shards.replayed, 1_000),
            ("a prefetch that raced a commit", shards.raced, 1_000),
            ("a commit that a restart undid after a read-back had seen it", shards.forgotten, 300),
            ("a death with a batch on its way", shards.dropped_commits, 150),
            ("a death in the midst of another operation", shards.dropped_operations, 100),
            ("a batch of leases for which the disk had no room", shards.leases_refused, 150),
            ("a read that found no free connection", shards.without_connection, 50),
            ("a full page of a sweep", shards.full_pages, 1000),
            ("a dead letter deleted after its retention", shards.dead_letters_deleted, 1_000),
            ("a dead letter kept for longer", shards.dead_letters_kept, 200),
            ("a dormant topic that went with its last dead letter", shards.dormant_dropped, 100),
            ("an item that was purged", shards.purged, 200),
            ("an item that a caller cancelled", shards.cancelled, 200),
            ("an item that a caller updated", shards.updated, 200),
            ("an item that an operation updated", shards.operated, 100),
            ("a dead letter that was redriven", shards.redriven, 100),
            ("leases that an operation released", shards.resets, 100),
            ("a process that stood still", self.stalls, 120),
            ("a process that lost a shard while it stood still", self.lost_in_stall, 80),
            ("a task that stood still", self.task_stalls, 100),
            ("a changed set of shards", self.reshards, 200),
            ("a key repeated after a change of the set of shards", self.repeated_across, 150),
            ("a shard handed over", self.handed_over, 300),
            ("a call passed on", self.forwarded, 1_000),
            ("a call passed on whose answer was lost", self.forward_lost, 100),
            ("a call that did not reach the owner", self.forward_unreached, 20),
            ("a change of shards while a process ran", self.told_shards, 1_500),
            ("a key found by the process that has its earlier home", self.found_elsewhere, 50),
            ("an expired lease", self.ran_out, 1_000),
            ("a stale receipt", self.lease_lost, 1_000),
            ("a dead letter", self.dead_letters, 1_000),
            ("an expired item", self.expired, 1_000),
            ("a duplicate", self.duplicates, 1_000),
            ("an unknown outcome", self.told_unknown, 300),
            ("a lost call", self.lost, 1_000),
            ("an extension", self.extended, 1_000),
            ("a delivery at most once", self.at_most_once, 1_000),
            ("a direct hand-off", self.handed_off, 500),
            ("a page of active topics", self.pages, 500),
        ];
        let missing = all.into_iter().filter(|(_, count, least)| count * 2_000 < least * runs);
        missing.map(|(name, count, least)| format!("{name}: {count}, of {least} in 2,000 runs")).collect()
    }

    /// Counts the situations of a run.
    pub(super) fn measure(&mut self, record: &RunRecord) {
        self.measure_processes(record);
        for call in &record.calls {
            self.calls += 1;
            match &call.what {
                What::Enqueue { items, answer, .. } => {
                    self.told_unknown += told_unknown(answer);
                    for at in 0..items.len() {
                        let result = answer.member(at);
                        self.duplicates += u64::from(matches!(result, Some(Ok(done)) if done.duplicate));
                    }
                    self.lost += u64::from(matches!(answer, Answer::Lost));
                }
                What::Dequeue { answer: Answer::Done(items), .. } => {
                    self.deliveries += items.len() as u64;
                    let once = items.iter().filter(|item| item.policy == DeliveryPolicy::AtMostOnce);
                    self.at_most_once += once.count() as u64;
                }
                What::ActiveTopics { answer, .. } => {
                    self.pages += u64::from(matches!(answer, Answer::Done(_)));
                }
                What::Dequeue { .. } => self.lost += 1,
                What::Ack { answer, .. } | What::Nack { answer, .. } => {
                    self.told_unknown += told_unknown(answer);
                    if let Answer::Done(results) = answer {
                        let lost = |result: &&forebay_engine::SettlementResult| {
                            result.as_ref().err().is_some_and(|refusal| refusal.fate.is_some())
                        };
                        self.lease_lost += results.iter().filter(lost).count() as u64;
                    }
                }
                What::Change { answer, .. } => self.told_unknown += told_unknown(answer),
                What::Extend { answer, .. } => {
                    self.told_unknown += told_unknown(answer);
                    if let Answer::Done(results) = answer {
                        self.extended += results.iter().filter(|result| result.is_ok()).count() as u64;
                    }
                }
            }
        }
        for batch in record.shards.iter().flat_map(|shard| &shard.log) {
            let mut new = HashSet::new();
            for change in &batch.changes {
                match change {
                    Change::Inserted(row) => drop(new.insert(row.key.seq)),
                    Change::Leased(entry) => self.handed_off += u64::from(new.contains(&entry.seq)),
                    Change::Closed(entry) => self.ran_out += u64::from(entry.deadline <= batch.done.at),
                    Change::DeadLettered(_) => self.dead_letters += 1,
                    Change::Deleted(row) => {
                        let over = row.attributes.expires_at.is_some_and(|end| end <= batch.done.at);
                        self.expired += u64::from(over);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Counts what happened to processes.
    fn measure_processes(&mut self, record: &RunRecord) {
        for stall in &record.stalls {
            let Some(end) = stall.end else { continue };
            if !stall.whole {
                self.task_stalls += 1;
                continue;
            }
            self.stalls += 1;
            let lost = |owners: &[TakeOverRecord]| {
                let before = owners.iter().rfind(|owner| owner.done.event < stall.begin.event);
                let after = owners.iter().find(|owner| owner.done.event > stall.begin.event);
                before.is_some_and(|owner| owner.process == stall.process)
                    && after.is_some_and(|owner| owner.done.event < end.event)
            };
            self.lost_in_stall += record.shards.iter().filter(|shard| lost(&shard.owners)).count() as u64;
        }
        let changes = record.configured.windows(2).filter(|pair| pair[0] != pair[1]);
        self.reshards += changes.count() as u64;
        self.repeated_across += repeated_across(record);
        let handed = |pair: &&[TakeOverRecord]| pair[1].released && pair[0].process != pair[1].process;
        let handed = record.shards.iter().map(|shard| shard.owners.windows(2).filter(handed).count());
        self.handed_over += handed.sum::<usize>() as u64;
    }
}

/// Members of a call that were told that nobody knows their outcome.
fn told_unknown<T>(answer: &Answer<Vec<Result<T, Refusal>>>) -> u64 {
    let members = match answer {
        Answer::Done(results) => results.len(),
        Answer::Refused(_) => 1,
        Answer::Lost => 0,
    };
    (0..members).filter(|at| answer.known(*at) == CallerKnowledge::Maybe).count() as u64
}

/// How many enqueues were answered as duplicates of what a process with another set of shards had stored.
fn repeated_across(record: &RunRecord) -> u64 {
    let mut stored_by = HashMap::new();
    for (shard, batch) in
        record.shards.iter().flat_map(|shard| shard.log.iter().map(move |batch| (shard, batch)))
    {
        for change in &batch.changes {
            if let Change::Inserted(row) = change {
                stored_by.entry((shard.id, row.key.seq)).or_insert(batch.process);
            }
        }
    }
    let configured = |process: usize| record.configured.get(process.wrapping_sub(1));
    let mut count = 0;
    for call in &record.calls {
        let What::Enqueue { items, answer, .. } = &call.what else { continue };
        for at in 0..items.len() {
            let Some(Ok(done)) = answer.member(at) else { continue };
            let by = stored_by.get(&(done.id.shard, done.id.seq));
            count += u64::from(by.is_some_and(|by| configured(*by) != configured(call.process)));
        }
    }
    count
}
