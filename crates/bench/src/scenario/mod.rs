//! The scenarios, one per file.

pub mod baseline;
pub mod delay;
pub mod drain;
pub mod enqueue;
pub mod idle;
pub mod latency;
pub mod lifecycle;
pub mod topics;
