//! Which node serves each member of a call: this one, or the owner of its shard.
//!
//! A client may call any node. The node that takes the call is its front. What belongs to shards of the front
//! is served by its own engine; the rest is passed on to the owners, shard by shard, and the answers are put
//! together. It does no I/O of its own: [`Links`] is the way to other nodes.

mod enqueue;
mod front;
mod links;
mod route;
mod settle;

pub use front::Front;
pub use links::{Answers, LinkError, Links};
