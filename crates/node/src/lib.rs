//! A node: the calls of the queue over gRPC, and the order of start and stop.
#![doc = include_str!("../README.md")]

mod descriptors;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod grpc;
mod huge_pages;
mod node;
mod readiness;
pub mod start;
pub mod stop;

pub use node::Node;
