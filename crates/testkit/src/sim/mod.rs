//! A seeded simulation of the engine: fake shards, random clients, faults, crashes, and a checker.
//!
//! A run uses one thread and paused time, and everything in it follows from one seed. So a failed run can be
//! repeated: see [`Plan`] and [`run`].

mod caller_bug;
mod chaos;
mod client;
mod client_changes;
mod clock;
mod cluster;
mod coverage;
mod drain;
mod find;
mod history;
mod links;
mod node;
mod payload;
mod plan;
mod process;
mod run;
mod seeds;
mod tasks;
mod world;

pub mod check;

pub use caller_bug::CallerBug;
pub use clock::SimClock;
pub use cluster::{ClusterCoverage, Fault};
pub use coverage::Coverage;
pub use find::find_bug;
pub use history::{Answer, Call, CallerKnowledge, SentItem, Stall, What};
pub use payload::{payload, tag_of};
pub use plan::{Kind, Plan};
pub use run::{Report, run};
pub use seeds::{Seeds, repeat_seeds, run_seeds};
pub use tasks::{ProcessTasks, Still};
