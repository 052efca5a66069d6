//! The way to other nodes, and the listener for them.
//!
//! Nodes of a cluster ask each other over a port of their own, with the cluster's secret (`links.rs`,
//! `server.rs`), and pass calls on to the owner of a shard (`forward.rs`, `serve_forwarded.rs`).

mod changes;
mod channels;
mod connection;
mod credentials;
mod dial;
mod explain;
mod forward;
mod keys;
mod links;
mod looks;
mod old_looks;
mod operations;
mod room;
mod serve_forwarded;
mod server;
pub(crate) mod wire;

pub use changes::NoAnswer;
pub use connection::Incoming;
pub use credentials::Credentials;
pub use dial::Dial;
pub use links::PeerLinks;
pub use server::{PeerServing, serve};
