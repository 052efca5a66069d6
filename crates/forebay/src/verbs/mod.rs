//! One file a verb.

pub mod ack;
pub mod check_config;
pub mod dequeue;
pub mod dev;
mod dev_nodes;
pub mod enqueue;
pub mod extend;
pub mod health;
pub mod migrate;
pub mod nack;
pub mod node;
pub mod nodes;
pub mod serve;
pub mod shards;
pub mod topics;

mod connection;
mod demo;
mod run;
mod settled;
