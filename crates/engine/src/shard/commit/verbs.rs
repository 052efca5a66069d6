//! When the next batch is due, and how long it may be where tenants share the shard.

use std::time::Duration;

use forebay_store::Sweep;
use forebay_types::Monotonic;

use super::{
    in_flight::{LeaseOutcome, PlannedAction},
    row_costs::Prices,
};
use crate::{
    clock::Moment,
    shard::{OwnedShard, work::ShardLease},
};

/// How long a batch in flight counts as one that its server is busy with. It may be stuck with its shard
/// alone.
const STALL_AFTER: Duration = Duration::from_millis(100);

/// The most leases that ended which are looked at.
const TIMEOUTS_MAX: usize = 250;

impl OwnedShard {
    /// The next batch is to show whether the store commits, and nothing else: no caller waits for it.
    pub fn want_probe(&mut self) {
        self.commit.probe = true;
    }

    /// Until when the shard's server counts as busy with the batch in flight.
    pub fn busy_until(&self, at: Monotonic) -> Option<Monotonic> {
        let until = self.commit.in_flight.as_ref()?.sent_at.plus(STALL_AFTER);
        (at < until).then_some(until)
    }

    /// How long the shard's turn at its server will take, if it has something to do, by what its last commit
    /// took.
    pub fn turn_takes(&self) -> Duration {
        let busy = self.commit.in_flight.is_some() || self.waiting_rows() > 0;
        if busy { self.tenure.commit_took } else { Duration::ZERO }
    }

    /// Whether a batch is in flight.
    pub fn is_committing(&self) -> bool {
        self.commit.in_flight.is_some()
    }

    /// Rows of the next batch, at least, if there is something to commit and no batch is in flight.
    pub fn next_batch_rows(&mut self, node: Moment) -> Option<usize> {
        let moment = self.tenure.time.moment(node);
        if self.commit.in_flight.is_some() {
            return None;
        }
        if self.commit.disk.is_barren(moment.at) {
            return None;
        }
        let rows = self.waiting_rows() + self.intake.restores.sum().rows + self.upkeep.operations.orders();
        let rows = rows + self.intake.changes.rows();
        let due = self.commit.probe
            || self.record_due(moment.at).is_some()
            || self.upkeep.sweeps.has_page()
            || self.upkeep.operations.has_page()
            || self.contents.leases.next_deadline().is_some_and(|end| end <= moment.now)
                && moment.at >= self.commit.timeouts_after
            || self.topic_drop_due().is_some_and(|due| due <= moment.at);
        (rows > 0 || due).then_some(rows)
    }

    /// When something is due without an event. `deferred`: what is due waits for the shard's turn, which
    /// comes with an event or when a server's batch stalls.
    pub fn next_wake(&mut self, node: Moment, deferred: bool) -> Option<Monotonic> {
        let moment = self.tenure.time.moment(node);
        let wants_read = self.has_tallies() && self.intake.changes.wants_read();
        if self.intake.keys.has_resumed() || self.contents.evicts_on || wants_read {
            return Some(moment.at);
        }
        let batch = match &self.commit.in_flight {
            Some(_) => None,
            None if deferred => None,
            None if self.commit.disk.is_barren(moment.at) => {
                let scans = self.next_scan(moment);
                self.commit.disk.next_try(moment.at).into_iter().chain(scans).min()
            }
            None => self.next_batch_due(moment).into_iter().chain(self.next_scan(moment)).min(),
        };
        let generations = self.upkeep.generations.next_wake(&self.settings, moment.now, moment.at);
        [batch, generations, self.busy_until(moment.at)].into_iter().flatten().min()
    }

    /// When a sweep or an operation has something to look for, or tallies are to be read.
    fn next_scan(&self, moment: Moment) -> Option<Monotonic> {
        let tallies = self.contents.topics.tally_load.next_wake();
        let operation = self.upkeep.operations.next_wake(moment).filter(|_| self.has_tallies());
        [self.upkeep.sweeps.next_wake(moment, self.sweeps_due()), operation, tallies]
            .into_iter()
            .flatten()
            .min()
    }

    /// When a batch has something to do that nobody asked for.
    fn next_batch_due(&self, moment: Moment) -> Option<Monotonic> {
        let timeout =
            self.contents.leases.next_deadline().map(|end| moment.when(end).max(self.commit.timeouts_after));
        [timeout, self.topic_drop_due()].into_iter().flatten().min()
    }

    /// When a topic has been empty for so long that it is dropped, or a namespace is to count anew.
    fn topic_drop_due(&self) -> Option<Monotonic> {
        if self.contents.topics.forgotten.wants_batch() {
            return Some(self.upkeep.not_before);
        }
        let since = self.contents.topics.next_unused().map(|(since, _)| since);
        since.map(|since| since.plus(self.settings.idle_topic).max(self.upkeep.not_before))
    }

    /// The leases of the batch in flight, for the planted bug that hands them out too early.
    pub fn planned_leases(&self) -> Vec<(ShardLease, Vec<LeaseOutcome>)> {
        let planned = self.commit.in_flight.iter().flat_map(|batch| &batch.planned);
        let leases = planned.filter_map(|planned| match planned {
            PlannedAction::Lease { part, leased } => Some((part.clone(), leased.clone())),
            _ => None,
        });
        leases.collect()
    }

    /// Notes whose work waits for the next batch.
    pub(in crate::shard) fn note_company(&mut self, moment: Moment) {
        let Moment { now, at } = moment;
        let (company, intake) = (&mut self.commit.company, &self.intake);
        company.meets_all(intake.settles.tenants(), intake.settles.first_tenant(), at);
        company.meets_all(intake.leasing.tenants(), intake.leasing.first_tenant(), at);
        company.meets_all(intake.enqueues.tenants(), intake.enqueues.first_tenant(), at);
        company.meets_all(intake.restores.tenants(), intake.restores.first_tenant(), at);
        intake.changes.tenants().for_each(|tenant| company.meets(tenant, at));
        if let Some(tenant) = self.upkeep.operations.page_tenant() {
            company.meets(&tenant, at);
        }
        let timed_out = self.contents.leases.timed_out(now).take(TIMEOUTS_MAX).map(|lease| lease.topic);
        let of_page = self.upkeep.sweeps.page_topics();
        for topic in of_page.chain(timed_out).filter_map(|topic| self.contents.topics.get(topic)) {
            company.meets(&topic.name.namespace, at);
        }
    }

    /// The prices of a batch that is built now. While a bad row is searched, only the number of rows counts.
    pub(in crate::shard) fn prices(&self, rows_max: usize, at: Monotonic) -> Prices {
        match self.commit.rows_max.is_none() && self.commit.company.is_there(at) {
            true => self.commit.row_costs.prices(self.tenure.batch + 1, rows_max),
            false => Prices::by_row(),
        }
    }

    /// The most rows of a sweep's page.
    pub(in crate::shard) fn page_rows_max(&self, sweep: Sweep, at: Monotonic) -> usize {
        let most = self.settings.sweep_rows;
        match self.commit.company.is_there(at) {
            true => most.min(self.commit.row_costs.page_rows(sweep)),
            false => most,
        }
    }
}
