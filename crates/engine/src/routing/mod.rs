//! Which shard takes what: rendezvous hashing, and where dedupe keys have their homes.

pub(crate) mod key_homes;
pub(crate) mod rendezvous;
