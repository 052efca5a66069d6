//! Which situations the runs met.

use std::collections::HashSet;

use forebay_types::DeliveryPolicy;

use super::{
    check::RunRecord,
    history::{Answer, Known, What},
};
use crate::fake::{Change, StoreCoverage};

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
        let (sum, shards) = (&mut self.shards, &other.shards);
        sum.unknown += shards.unknown;
        sum.unknown_done += shards.unknown_done;
        sum.take_over_in_flight += shards.take_over_in_flight;
        sum.poisoned += shards.poisoned;
        sum.fenced += shards.fenced;
        sum.raced += shards.raced;
        sum.replayed += shards.replayed;
        sum.forgotten += shards.forgotten;
        sum.dropped_commits += shards.dropped_commits;
        sum.dropped_operations += shards.dropped_operations;
    }

    /// The situations that a set of runs must cover and did not.
    pub fn missing(&self) -> Vec<&'static str> {
        let all = [
            ("a take-over with a batch in flight", self.shards.take_over_in_flight),
            ("an unknown commit that was done", self.shards.unknown_done),
            ("an unknown commit that was not done", self.shards.unknown - self.shards.unknown_done),
            ("a batch refused by the fence", self.shards.fenced),
            ("a batch with a row that cannot be stored", self.shards.poisoned),
            ("a batch rolled back", self.shards.replayed),
            ("a prefetch that raced a commit", self.shards.raced),
            ("an expired lease", self.ran_out),
            ("a stale receipt", self.lease_lost),
            ("a dead letter", self.dead_letters),
            ("an expired item", self.expired),
            ("a duplicate", self.duplicates),
            ("an unknown outcome", self.told_unknown),
            ("a lost call", self.lost),
            ("an extension", self.extended),
            ("a delivery at most once", self.at_most_once),
            ("a direct hand-off", self.handed_off),
            ("a page of active topics", self.pages),
            ("a commit that a restart undid", self.shards.forgotten),
            ("a death with a batch on its way", self.shards.dropped_commits),
            ("a death in the midst of another operation", self.shards.dropped_operations),
        ];
        all.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect()
    }

    /// Counts the situations of a run.
    pub(super) fn measure(&mut self, record: &RunRecord) {
        for call in &record.calls {
            self.calls += 1;
            match &call.what {
                What::Enqueue { items, answer, .. } => {
                    for at in 0..items.len() {
                        let result = answer.member(at);
                        self.duplicates += u64::from(matches!(result, Some(Ok(done)) if done.duplicate));
                        let unknown = matches!(result, Some(Err(_))) && answer.known(at) == Known::Maybe;
                        self.told_unknown += u64::from(unknown);
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
                    if let Answer::Done(results) = answer {
                        let lost = |result: &&forebay_engine::Settled| {
                            result.as_ref().err().is_some_and(|refusal| refusal.fate.is_some())
                        };
                        self.lease_lost += results.iter().filter(lost).count() as u64;
                    }
                }
                What::Extend { answer, .. } => {
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
}
