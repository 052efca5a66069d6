//! Tools that Forebay's tests share.
#![doc = include_str!("../README.md")]

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
