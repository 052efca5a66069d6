//! The calls, one file each.

pub(crate) mod ack;
pub(crate) mod active_topics;
mod by_origin;
mod cluster;
pub(crate) mod dequeue;
pub(crate) mod enqueue;
pub(crate) mod extend_lease;
mod member_results;
pub(crate) mod nack;
