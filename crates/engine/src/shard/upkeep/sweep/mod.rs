//! The sweeps that scan by time.

pub(in crate::shard) mod sweeper;
mod verbs;
