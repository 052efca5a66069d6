//! A catalog in memory: the semantics of the SQL ones, and faults at will.
//!
//! A [`CatalogDb`] outlives the processes that use it. Each of them reaches it through a [`FakeCatalog`] of
//! its own. What a process has sent takes effect, whatever becomes of the process.

mod access;
mod bug;
mod db;
mod faults;
mod records;
mod tables;

pub use access::FakeCatalog;
pub use bug::CatalogBug;
pub use db::{AssignmentRecord, CatalogDb, CatalogState, Change};
pub use faults::{CatalogFaults, Outage};
