//! The engine over real SQLite shards: every path once.

mod ack;
mod active_topics;
mod dequeue;
mod enqueue;
mod extend_lease;
mod nack;
mod queue;
mod restart;
mod stop;
