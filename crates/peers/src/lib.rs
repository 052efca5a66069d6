//! The way to other nodes, and the port for them.
#![doc = include_str!("../README.md")]

mod ask;
mod changes;
mod channels;
mod connection;
mod copy;
mod credentials;
mod dial;
mod explain;
mod fetch;
mod forward;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod history;
mod keys;
mod links;
pub mod looks;
mod operations;
mod room;
mod serve_forwarded;
mod server;
mod watch;
pub mod wire;

pub use changes::NoAnswer;
pub use connection::PeerListener;
pub use credentials::Credentials;
pub use dial::Dial;
pub use links::PeerLinks;
pub use server::{PeerCalls, PeerServer, serve};
