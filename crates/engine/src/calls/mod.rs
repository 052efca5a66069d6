//! The calls of clients and operators: a verb a file.

pub(crate) mod ack;
pub(crate) mod active_topics;
pub(crate) mod change_items;
pub(crate) mod dedupe;
pub(crate) mod dequeue;
pub(crate) mod enqueue;
pub(crate) mod extend_lease;
pub(crate) mod find_keys;
pub(crate) mod forgotten;
pub(crate) mod look_leases;
pub(crate) mod look_operations;
pub(crate) mod look_standing;
pub(crate) mod look_topics;
pub(crate) mod nack;
pub(crate) mod order_operation;
pub(crate) mod peer_news;
pub(crate) mod policies;
pub(crate) mod settle;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod watch;
