//! Settlements of deliveries that are over: where their items are has to be read.

pub(in crate::shard) mod locates;
mod verbs;
