//! The contents of a shard: its topics with their ready items, and its open deliveries.

pub(super) mod leases;
pub(super) mod ready;
pub(super) mod topics;

use forebay_types::Seq;
use rustc_hash::FxHashSet;

use self::{
    leases::{log::Leases, tenants::Tenants},
    ready::{prefetches::Prefetches, vanished::MissingItems},
    topics::table::TopicTable,
};

/// The contents of a shard, as of the last resolved batch.
pub(super) struct Contents {
    /// Its topics, with their counts and windows.
    pub topics: TopicTable,
    /// Its open deliveries.
    pub leases: Leases,
    /// Items that have left their windows, on their way to a lease.
    pub reserved: FxHashSet<Seq>,
    /// Items that each tenant has leased and reserved.
    pub tenants: Tenants,
    /// Reads of windows.
    pub prefetches: Prefetches,
    /// Items of the ready index that were not in the store.
    pub vanished: MissingItems,
    /// Bytes of ready index and cached bodies that it may hold.
    pub index_budget: usize,
    /// Windows are still to be cut.
    pub evicts_on: bool,
}

impl Contents {
    /// Of a shard that was just taken over.
    pub fn new(
        topics: TopicTable,
        leases: Leases,
        tenants: Tenants,
        prefetches: Prefetches,
        index_budget: usize,
    ) -> Self {
        Self {
            topics,
            leases,
            reserved: FxHashSet::default(),
            tenants,
            prefetches,
            vanished: MissingItems::default(),
            index_budget,
            evicts_on: false,
        }
    }
}
