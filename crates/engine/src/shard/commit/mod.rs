//! The batch on its way to the store, and what the next one may be.

pub(super) mod company;
pub(super) mod disk_room;
pub(super) mod in_flight;
pub(super) mod row_costs;
mod verbs;

use forebay_types::Monotonic;

use self::{company::Company, disk_room::DiskRoom, in_flight::InFlight, row_costs::RowCosts};

/// The batch in flight, and what earlier ones taught.
#[derive(Default)]
pub(super) struct Commit {
    /// The batch on its way to the store.
    pub in_flight: Option<InFlight>,
    /// The next batch is an empty one that shows whether the store commits.
    pub probe: bool,
    /// The next batch has at most so many rows, because a row of the last one can't be stored.
    pub rows_max: Option<usize>,
    /// The time that rows take.
    pub row_costs: RowCosts,
    /// Whether tenants share the batches.
    pub company: Company,
    /// The cost of calls with a request id beyond the share of enqueues.
    pub long_calls_owe: usize,
    /// The room on the disk.
    pub disk: DiskRoom,
    /// Since when batches have been tried of which none was committed.
    pub stalled_since: Option<Monotonic>,
    /// Leases that ended without an ack are left alone until then, so that acks on their way come first.
    pub timeouts_after: Monotonic,
}
