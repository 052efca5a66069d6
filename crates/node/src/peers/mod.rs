//! The way to other nodes, and the listener for them.
//!
//! Nodes of a cluster with a catalog ask each other over a port of their own, with the cluster's secret
//! (`links.rs`, `server.rs`). Nodes that share a static list of shards know only each other's gRPC port, and
//! check whether somebody lives there (`health.rs`).

mod credentials;
mod health;
mod links;
mod server;

pub use credentials::Credentials;
pub use health::HealthPeers;
pub use links::PeerLinks;
pub use server::{PeerServing, serve};
