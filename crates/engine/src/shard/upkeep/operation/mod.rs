//! The shard's parts of operations: their pages, their walk, their bounds.

pub(in crate::shard) mod bounds;
pub(in crate::shard) mod operations;
mod part;
pub(in crate::shard) mod verbs;
mod walk;
