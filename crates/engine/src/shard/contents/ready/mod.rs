//! The ready index: the items of each topic that can be delivered, as far as memory holds them.

mod items;
pub(in crate::shard) mod prefetches;
pub(in crate::shard) mod vanished;
pub(in crate::shard) mod verbs;
pub(in crate::shard) mod window;
