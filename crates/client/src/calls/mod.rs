//! The calls, one file each.

pub(crate) mod ack;
pub(crate) mod active_topics;
pub(crate) mod audit;
mod by_origin;
mod change_cluster;
pub(crate) mod cluster;
pub(crate) mod consumers;
pub(crate) mod dead_groups;
pub(crate) mod dequeue;
pub(crate) mod enqueue;
pub(crate) mod explain;
pub(crate) mod extend_lease;
pub(crate) mod history;
pub(crate) mod items;
mod member_results;
pub(crate) mod nack;
pub(crate) mod namespaces;
pub(crate) mod operation_update;
pub(crate) mod operations;
pub(crate) mod pauses;
pub(crate) mod settings;
pub(crate) mod settings_document;
pub(crate) mod tokens;
pub(crate) mod topic_settings;
pub(crate) mod topics;
pub(crate) mod update_item;
pub(crate) mod who_am_i;
