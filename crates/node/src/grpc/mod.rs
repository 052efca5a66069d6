//! gRPC in front of the engine: one file a call, field checks in `fields`, error details in `status`,
//! limits on calls and bytes in `admission`.

mod ack;
mod active_topics;
mod admin;
mod admission;
mod dequeue;
mod enqueue;
mod extend_lease;
mod fields;
mod members;
mod nack;
mod queue;
mod server;
mod service;
mod status;
mod token;

pub use admin::Admin;
pub use admission::{AdmissionLoad, LoadLimits};
pub use queue::{Queue, RequestRules};
pub use server::{Health, ReflectionError, Serving, serve};
