//! Dedupe keys and request ids on their way through a shard.

pub(in crate::shard) mod keys;
mod verbs;
