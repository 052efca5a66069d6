//! Which node serves each member of a call: this one, or the owner of its shard.
#![doc = include_str!("../README.md")]

mod enqueue;
mod front;
mod links;
mod route;
mod settle;

pub use front::Front;
pub use links::{Answers, LinkError, Links};
