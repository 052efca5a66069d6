//! Which situations the shards met.

/// How often a shard met the situations that a simulation must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreCoverage {
    /// Commits whose answer was lost.
    pub unknown: u64,
    /// Commits of these that took effect.
    pub unknown_done: u64,
    /// Take-overs while a batch of the old owner was in flight.
    pub take_over_in_flight: u64,
    /// Batches with a row that cannot be stored.
    pub poisoned: u64,
    /// Batches that the fence refused.
    pub fenced: u64,
    /// Batches of a former owner that met a row of a later one, before the fence was asked.
    pub met_rows: u64,
    /// Reads of ready items during which a batch was committed.
    pub raced: u64,
    /// Batches that a fault rolled back.
    pub replayed: u64,
    /// Commits that the server lost in a restart, after a read-back had seen them.
    pub forgotten: u64,
    /// Batches on their way when the process that had sent them died.
    pub dropped_commits: u64,
    /// Other operations that were under way when their process died.
    pub dropped_operations: u64,
    /// Batches that were smaller than one with a row that cannot be stored, and were committed after it.
    pub split: u64,
    /// Leases for which there was no room on the disk.
    pub leases_refused: u64,
    /// Reads that found no free connection.
    pub without_connection: u64,
    /// Scans of a sweep that found more than fits into a page, or just as much.
    pub full_pages: u64,
    /// Dead letters that were deleted.
    pub dead_letters_deleted: u64,
    /// Dead letters whose end was put off.
    pub dead_letters_kept: u64,
    /// Topics that went with their last dead letter, after memory had forgotten them.
    pub dormant_dropped: u64,
    /// Items that operations purged.
    pub purged: u64,
    /// Items and dead letters that callers cancelled.
    pub cancelled: u64,
    /// Items that callers gave other values.
    pub updated: u64,
    /// Items that operations gave other values.
    pub operated: u64,
    /// Dead letters that operations redrove.
    pub redriven: u64,
    /// Batches in which operations released leases.
    pub resets: u64,
}

impl StoreCoverage {
    /// Adds the counts of another shard.
    pub fn add(&mut self, other: &Self) {
        self.unknown += other.unknown;
        self.unknown_done += other.unknown_done;
        self.take_over_in_flight += other.take_over_in_flight;
        self.poisoned += other.poisoned;
        self.fenced += other.fenced;
        self.met_rows += other.met_rows;
        self.raced += other.raced;
        self.replayed += other.replayed;
        self.forgotten += other.forgotten;
        self.dropped_commits += other.dropped_commits;
        self.dropped_operations += other.dropped_operations;
        self.split += other.split;
        self.leases_refused += other.leases_refused;
        self.without_connection += other.without_connection;
        self.full_pages += other.full_pages;
        self.dead_letters_deleted += other.dead_letters_deleted;
        self.dead_letters_kept += other.dead_letters_kept;
        self.dormant_dropped += other.dormant_dropped;
        self.purged += other.purged;
        self.cancelled += other.cancelled;
        self.updated += other.updated;
        self.operated += other.operated;
        self.redriven += other.redriven;
        self.resets += other.resets;
    }
}
