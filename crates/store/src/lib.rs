//! One shard of Forebay, kept in MySQL, MariaDB or SQLite: the only crate that names SQL.
//!
//! A [`Shard`] can be observed by anybody. To write it, a process takes it over and gets a [`Writer`],
//! whose every batch passes the fence. The store decides nothing: which rows a batch holds is worked out
//! in the engine, which is the shard's only writer and therefore knows all that matters.

mod batch;
mod error;
mod mysql;
mod rows;
mod shard;
mod sql;
mod sqlite;

pub use batch::{Batch, DeadLetter, ItemRow, Requeue};
pub use error::{CommitError, ErrorClass, MigrateError, StoreError};
pub use mysql::{MySqlOptions, MySqlShard};
pub use rows::{
    DedupeHit, DueRow, Fence, HighWaterMarks, LeaseChange, LeaseEntry, LeaseRow, Observation, ReadyRow,
    Settings, ShardSnapshot, ShardTopology, Sweep, TopicCounts, TopicRow,
};
pub use shard::{Claim, Heartbeat, Outcome, Reader, Shard, ShardConnections, Writer};
pub use sqlite::SqliteShard;
