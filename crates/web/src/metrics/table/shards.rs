//! Metrics of shards and their databases.

use super::labels::{ITEM_STATES, PHASES, SERVERS, SWEEPS};
use crate::metrics::metric::{Kind, Metric, Values::Shards, metric};

/// In the order of the documentation.
pub const SHARDS: &[Metric] = &[
    metric(
        Kind::Gauge,
        "forebay_shard_items",
        &[("shard", Shards), ("state", ITEM_STATES)],
        "Items of a shard that this node owns; a leased item is not counted as ready",
    ),
    metric(Kind::Gauge, "forebay_shard_owned", &[("shard", Shards)], "1 if this node owns the shard"),
    metric(Kind::Gauge, "forebay_shard_answers", &[("shard", Shards)], "0 if the shard does not answer"),
    metric(
        Kind::Gauge,
        "forebay_shard_breaker_open",
        &[("shard", Shards)],
        "1 if the breaker is open or half-open",
    ),
    metric(
        Kind::Gauge,
        "forebay_shard_epoch",
        &[("shard", Shards)],
        "Number of the present owner among all owners that the shard has had",
    ),
    metric(
        Kind::Gauge,
        "forebay_shard_last_commit_seconds",
        &[("shard", Shards)],
        "Duration of the last commit",
    ),
    metric(Kind::Gauge, "forebay_shard_index_bytes", &[("shard", Shards)], "Ready index and cached bodies"),
    metric(
        Kind::Gauge,
        "forebay_database_up",
        &[("server", SERVERS)],
        "0 if no shard of a database server answers this node",
    ),
    metric(
        Kind::Gauge,
        "forebay_clock_offset_seconds",
        &[("server", SERVERS)],
        "How far the database server's clock is ahead of node time, with SQLite the machine's, 0 if this \
         node does not know it",
    ),
    metric(
        Kind::Counter,
        "forebay_clock_steps_total",
        &[],
        "Times that node time stepped forward with the clocks that it follows, by more than five seconds",
    ),
    metric(
        Kind::Histogram,
        "forebay_commit_seconds",
        &[("shard", Shards)],
        "Duration of a batch's commit, with retries",
    ),
    metric(Kind::Histogram, "forebay_batch_rows", &[], "Rows of a batch"),
    metric(
        Kind::Counter,
        "forebay_take_overs_total",
        &[("shard", Shards)],
        "Times this node took the shard over",
    ),
    metric(
        Kind::Counter,
        "forebay_breaker_changes_total",
        &[("shard", Shards), ("to", PHASES)],
        "Changes of the breaker, by the phase that began",
    ),
    metric(
        Kind::Counter,
        "forebay_replays_total",
        &[("shard", Shards)],
        "Batches that a conflict rolled back, and that were sent again",
    ),
    metric(
        Kind::Counter,
        "forebay_unknown_outcomes_total",
        &[("shard", Shards)],
        "Commits without an answer, so that the outcome had to be asked for",
    ),
    metric(
        Kind::Counter,
        "forebay_poisoned_batches_total",
        &[],
        "Batches in which the database refused a row",
    ),
    metric(
        Kind::Counter,
        "forebay_disk_full_batches_total",
        &[],
        "Batches for which a database's disk was full",
    ),
    metric(
        Kind::Counter,
        "forebay_shards_given_up_total",
        &[],
        "Times a shard was given up because its batches failed again and again or were stuck, or because the \
         node's memory of it was wrong",
    ),
    metric(
        Kind::Counter,
        "forebay_lost_batches_total",
        &[("shard", Shards)],
        "Batches that this node had committed, and that the shard lacked when the node took it over again",
    ),
    metric(
        Kind::Counter,
        "forebay_fences_raised_total",
        &[("shard", Shards)],
        "Times a shard's fence was behind its rows when the shard was taken over",
    ),
    metric(
        Kind::Counter,
        "forebay_unstorable_changes_total",
        &[],
        "Changes that the database refuses and nobody waits for: ends of leases, rows of sweeps, \
         at-most-once items to be inserted again",
    ),
    metric(
        Kind::Counter,
        "forebay_vanished_items_total",
        &[],
        "Items of the ready index that were not in the store",
    ),
    metric(
        Kind::Counter,
        "forebay_unreadable_rows_total",
        &[],
        "Rows of items and dead letters that hold what this program can't read",
    ),
    metric(
        Kind::Gauge,
        "forebay_sweep_lag_seconds",
        &[("shard", Shards), ("sweep", SWEEPS)],
        "For how long the first row has waited that a sweep could have moved, 0 if there is none, and on \
         nodes that do not own the shard",
    ),
    metric(
        Kind::Counter,
        "forebay_sweep_moved_rows_total",
        &[("shard", Shards), ("sweep", SWEEPS)],
        "Rows that a sweep moved",
    ),
    metric(Kind::Counter, "forebay_prefetch_reads_total", &[], "Reads that fill the ready index"),
    metric(
        Kind::Counter,
        "forebay_heads_left_out_total",
        &[],
        "Times a shard was left out of the order because its first item was not read within 50 ms",
    ),
    metric(
        Kind::Counter,
        "forebay_late_shares_total",
        &[],
        "Shares of a dequeue's answer, each of a shard or of another node, that it did not wait for, since \
         they took 50 ms longer than the first. Their items keep their places, for whoever asks next",
    ),
    metric(
        Kind::Counter,
        "forebay_lookups_refused_total",
        &[],
        "Settlements of deliveries that are over, refused because too many of them waited for a look-up",
    ),
    metric(
        Kind::Counter,
        "forebay_reads_without_connection_total",
        &[],
        "Reads that failed because all of this node's connections for them were in use for 2 s",
    ),
];
