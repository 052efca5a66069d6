//! The queue itself, in process: no protobuf, no SQL, and time and randomness as arguments.
//!
//! `docs/ARCHITECTURE.md` walks through every path.

mod active_topics;
mod api;
mod apply;
mod breaker;
mod calls;
mod core;
mod counts;
mod dequeue;
mod engine;
mod enqueue;
mod event;
mod form;
mod generations;
mod give_back;
mod handover;
mod homes;
mod io;
mod leases;
mod look_up;
mod meet;
mod merge;
mod op;
mod ownership;
mod place;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod prefetch;
mod request;
mod settle;
mod shard;
mod sift;
mod status;
mod stop;
mod sweep;
mod sweep_due;
mod sweep_expiry;
mod time;
mod turns;
mod window;

pub use api::{
    ActiveTopic, ActiveTopics, ActiveTopicsCall, Delivered, Demand, DequeueCall, EnqueueCall, Enqueued,
    ExtendOf, Extended, NackAction, NackOf, NewItem, Peers, Schedule, Settings, Settled, ShardStatus, Status,
    SweepStatus, TopicPosition, TopicStatus,
};
pub use engine::Engine;
