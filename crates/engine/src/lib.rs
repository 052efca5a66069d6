//! The queue itself, in process: no protobuf, no SQL, and time and randomness as arguments.
//!
//! `docs/ARCHITECTURE.md` walks through every path.

mod active_topics;
mod api;
mod apply;
mod breaker;
mod calls;
mod core;
mod dequeue;
mod engine;
mod enqueue;
mod event;
mod form;
mod handover;
mod io;
mod leases;
mod op;
mod place;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod request;
mod settle;
mod shard;
mod status;
mod sweep;
mod sweep_due;
mod sweep_expiry;
mod time;
mod window;

pub use api::{
    ActiveTopic, ActiveTopics, ActiveTopicsCall, Delivered, Demand, DequeueCall, EnqueueCall, Enqueued,
    ExtendOf, Extended, NackAction, NackOf, NewItem, Peers, Schedule, Settings, Settled, ShardStatus, Status,
    SweepStatus, TopicPosition, TopicStatus,
};
pub use engine::Engine;
