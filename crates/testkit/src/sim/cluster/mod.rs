//! A cluster with a catalog: nodes that each run the real membership task, engine, front and links.
//!
//! `launch.rs` starts a node, `faults.rs` and `operator.rs` disturb the cluster, `served.rs` looks whether
//! the shards of a node that fails are served again, `settle.rs` whether the cluster is even once all is
//! well. What the catalog and the shards have logged is checked after the run (`check/moves.rs`).

mod anywhere;
mod catalog;
mod during;
mod even;
mod fault;
mod faults;
mod launch;
mod network;
mod operator;
mod served;
mod settle;
mod shards;
mod state;
mod trouble;
mod way;

pub use fault::Fault;
pub use faults::run as run_faults;
pub use launch::{begin, process_of};
pub use network::Network;
pub use settle::settle;
pub use state::{Cluster, ClusterCoverage, ClusterLog, MemberOf};
