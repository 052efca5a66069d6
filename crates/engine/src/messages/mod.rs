//! Messages between the engine's event loop and the shards' tasks: values only.

pub(crate) mod delivery_guard;
pub(crate) mod event;
pub(crate) mod look;
pub(crate) mod look_turn;
pub(crate) mod node_watch;
pub(crate) mod pending_dequeue;
pub(crate) mod pulse;
pub(crate) mod reply;
pub(crate) mod shard;
pub(crate) mod tenant_budget;
