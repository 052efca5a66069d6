//! One file a verb.

pub mod ack;
pub mod check_config;
pub mod completions;
pub mod context;
pub mod dead_letter;
pub mod dequeue;
pub mod dev;
mod dev_nodes;
mod dev_token;
pub mod enqueue;
pub mod error;
pub mod extend;
pub mod health;
pub mod item;
pub mod man;
pub mod migrate;
pub mod nack;
pub mod node;
pub mod operation;
pub mod serve;
pub mod shard;
pub mod token;
pub mod topic;
pub mod topics;
pub mod whoami;
pub mod worker;

mod bulk;
mod catalog;
mod connection;
mod demo;
mod pages;
mod run;
mod servers;
mod settled;
mod tls_flags;
mod token_flags;
