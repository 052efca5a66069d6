//! How long a batch may be, where tenants share the shard.

use forebay_store::Sweep;
use forebay_types::Monotonic;

use super::{OwnedShard, row_costs::Prices};
use crate::clock::Moment;

/// The most leases that ended which are looked at.
const TIMEOUTS_MAX: usize = 250;

impl OwnedShard {
    /// Notes whose work waits for the next batch.
    pub(super) fn note_company(&mut self, moment: Moment) {
        let Moment { now, at } = moment;
        let Self { company, settles, leasing, enqueues, restores, topics, .. } = self;
        company.meets_all(settles.tenants(), settles.first_tenant(), at);
        company.meets_all(leasing.tenants(), leasing.first_tenant(), at);
        company.meets_all(enqueues.tenants(), enqueues.first_tenant(), at);
        company.meets_all(restores.tenants(), restores.first_tenant(), at);
        self.changes.tenants().for_each(|tenant| company.meets(tenant, at));
        if let Some(tenant) = self.operations.page_tenant() {
            company.meets(&tenant, at);
        }
        let timed_out = self.leases.timed_out(now).take(TIMEOUTS_MAX).map(|lease| lease.topic);
        for topic in self.sweeps.page_topics().chain(timed_out).filter_map(|topic| topics.get(topic)) {
            company.meets(&topic.name.namespace, at);
        }
    }

    /// The prices of a batch that is built now. While a bad row is searched, only the number of rows counts.
    pub(super) fn prices(&self, rows_max: usize, at: Monotonic) -> Prices {
        match self.rows_max.is_none() && self.company.is_there(at) {
            true => self.row_costs.prices(self.tenure.batch + 1, rows_max),
            false => Prices::by_row(),
        }
    }

    /// The most rows of a sweep's page.
    pub(super) fn page_rows_max(&self, sweep: Sweep, at: Monotonic) -> usize {
        let most = self.settings.sweep_rows;
        match self.company.is_there(at) {
            true => most.min(self.row_costs.page_rows(sweep)),
            false => most,
        }
    }
}
