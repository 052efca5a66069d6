//! gRPC in front of the engine: one file a call.

mod ack;
mod active_topics;
mod dequeue;
mod enqueue;
mod extend_lease;
mod from;
mod nack;
mod owner;
mod queue;
mod server;
mod service;

pub use queue::Queue;
pub use server::{GrpcServer, Health, Layers, ReflectionError, serve};
