//! Work that time alone makes due in a shard, and when.

use std::time::Duration;

use forebay_types::Monotonic;

use super::OwnedShard;
use crate::clock::Moment;

/// How long a batch in flight counts as one that its server is busy with. It may be stuck with its shard
/// alone.
const STALL_AFTER: Duration = Duration::from_millis(100);

impl OwnedShard {
    /// Until when the shard's server counts as busy with the batch in flight.
    pub fn busy_until(&self, at: Monotonic) -> Option<Monotonic> {
        let until = self.in_flight.as_ref()?.sent_at.plus(STALL_AFTER);
        (at < until).then_some(until)
    }

    /// How long the shard's turn at its server will take, if it has something to do, by what its last commit
    /// took.
    pub fn turn_takes(&self) -> Duration {
        let busy = self.in_flight.is_some() || self.waiting_rows() > 0;
        if busy { self.tenure.commit_took } else { Duration::ZERO }
    }

    /// Whether a batch is in flight.
    pub fn is_committing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Rows of the next batch, at least, if there is something to commit and no batch is in flight.
    pub fn next_batch_rows(&mut self, node: Moment) -> Option<usize> {
        let moment = self.time.moment(node);
        if self.in_flight.is_some() {
            return None;
        }
        if self.disk.is_barren(moment.at) {
            return None;
        }
        let rows = self.waiting_rows() + self.restores.sum().rows + self.operations.orders();
        let rows = rows + self.changes.rows();
        let due = self.probe
            || self.record_due(moment.at).is_some()
            || self.sweeps.has_page()
            || self.operations.has_page()
            || self.leases.next_deadline().is_some_and(|end| end <= moment.now)
                && moment.at >= self.timeouts_after
            || self.topic_drop_due().is_some_and(|due| due <= moment.at);
        (rows > 0 || due).then_some(rows)
    }

    /// When something is due without an event. `deferred`: what is due waits for the shard's turn, which
    /// comes with an event or when a server's batch stalls.
    pub fn next_wake(&mut self, node: Moment, deferred: bool) -> Option<Monotonic> {
        let moment = self.time.moment(node);
        let wants_read = self.has_tallies() && self.changes.wants_read();
        if self.keys.has_resumed() || self.evicts_on || wants_read {
            return Some(moment.at);
        }
        let batch = match &self.in_flight {
            Some(_) => None,
            None if deferred => None,
            None if self.disk.is_barren(moment.at) => {
                let scans = self.next_scan(moment);
                self.disk.next_try(moment.at).into_iter().chain(scans).min()
            }
            None => self.next_batch_due(moment).into_iter().chain(self.next_scan(moment)).min(),
        };
        let generations = self.generations.next_wake(&self.settings, moment.now, moment.at);
        [batch, generations, self.busy_until(moment.at)].into_iter().flatten().min()
    }

    /// When a sweep or an operation has something to look for, or tallies are to be read.
    fn next_scan(&self, moment: Moment) -> Option<Monotonic> {
        let tallies = self.topics.tally_load.next_wake();
        let operation = self.operations.next_wake(moment).filter(|_| self.has_tallies());
        [self.sweeps.next_wake(moment, self.sweeps_due()), operation, tallies].into_iter().flatten().min()
    }

    /// When a batch has something to do that nobody asked for.
    fn next_batch_due(&self, moment: Moment) -> Option<Monotonic> {
        let timeout = self.leases.next_deadline().map(|end| moment.when(end).max(self.timeouts_after));
        [timeout, self.topic_drop_due()].into_iter().flatten().min()
    }

    /// When a topic has been empty for so long that it is dropped, or a namespace is to count anew.
    fn topic_drop_due(&self) -> Option<Monotonic> {
        if self.topics.forgotten.wants_batch() {
            return Some(self.upkeep_after);
        }
        let since = self.topics.next_unused().map(|(since, _)| since);
        since.map(|since| since.plus(self.settings.idle_topic).max(self.upkeep_after))
    }
}
