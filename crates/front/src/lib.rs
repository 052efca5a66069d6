//! Which node serves each member of a call: this one, or the owner of its shard.
#![doc = include_str!("../README.md")]

mod active_topics;
mod enqueue;
mod front;
mod kept_pages;
mod links;
mod route;
mod settle;
mod watch;

pub use enqueue::EnqueueAnswer;
pub use front::Front;
pub use links::{Answers, LinkError, Links, PeerReport, Reports, WatchError};
pub use watch::watch_nodes;
