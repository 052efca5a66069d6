//! gRPC and HTTP in front of the engine, the configuration, and the order of start and stop.
#![doc = include_str!("../README.md")]

pub mod access;
pub mod audit;
mod browsers;
pub mod cluster;
pub mod config;
pub mod connections;
mod descriptors;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod gather;
pub mod grpc;
pub mod history;
pub mod http;
mod listen;
mod looks;
mod node;
pub mod peers;
pub mod policies;
pub mod random;
mod readiness;
mod request_ids;
mod serve_http;
pub mod shard_reports;
pub mod shards;
mod signing;
pub mod start;
pub mod stop;
pub mod tls;
pub mod traces;

pub use node::Node;
