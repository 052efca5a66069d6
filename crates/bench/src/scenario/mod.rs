//! What is done with a queue, one file each.

pub mod delay;
pub mod drain;
pub mod enqueue;
pub mod floor;
pub mod idle;
pub mod latency;
pub mod lifecycle;
pub mod topics;
