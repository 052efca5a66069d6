//! Changes of single items.

pub(in crate::shard) mod changes;
mod verbs;
