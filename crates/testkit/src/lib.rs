//! Tools that Forebay's tests share: the contract of the stores, a fake store and engines over it, database
//! servers, a proxy that disturbs connections, certificates, the simulation.

pub mod certificates;
pub mod contract;
pub mod fake;
mod fake_shards;
mod program;
pub mod proxy;
pub mod servers;
pub mod sim;

pub use fake_shards::{FakeShards, NAMESPACE, dequeue, item};
pub use program::program;
