//! A shard in memory: the semantics of the SQL stores, faults at will, and strict checks of the engine.
//!
//! A [`Db`] outlives the engines that use it, so that the successor of a crashed one finds the rows. Each
//! simulated process reaches it through a [`FakeShard`] of its own.

mod apply;
mod audit;
mod catalog;
mod change;
mod coverage;
mod db;
mod dice;
mod faults;
mod heartbeat;
mod highest;
mod journal;
mod leases;
mod namespace_tallies;
mod operations;
mod owners;
mod process;
mod reader;
mod restart;
mod session;
mod shard;
mod store_bug;
mod tables;
mod tallies;
mod topic_entry;
mod writer;

pub use catalog::{
    AssignmentRecord, CatalogBug, CatalogDb, CatalogFaults, CatalogState, Change as HomeChange, FakeCatalog,
    Outage,
};
pub use change::{Change, Violation};
pub use coverage::StoreCoverage;
pub use db::{CommitRecord, Db, POISON, State};
pub use dice::Dice;
pub use faults::Faults;
pub use journal::{Journal, Moment};
pub use owners::{AttemptRecord, ReleaseRecord, TakeOverRecord};
pub use process::{Life, Process};
pub use shard::FakeShard;
pub use store_bug::StoreBug;
pub use tables::{Keys, Tables, TopicEntry};
