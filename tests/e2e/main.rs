//! One binary for every end-to-end test: real `forebay` processes, real database servers, and a checker of
//! what clients saw.
//!
//! Each test puts a node under load ([`load`]), injects a fault, recovers, drains the queue, and then checks
//! the whole history ([`history`], [`check`]). `FOREBAY_E2E_ROUNDS` sets how often a test injects its fault.

mod backend;
mod catalog_copy;
mod check;
mod cli;
mod client_load;
mod cluster;
mod collector;
#[cfg(feature = "containers")]
mod compose;
mod drain;
mod grafana;
mod history;
mod kept_tokens;
mod load;
mod node;
mod rpc;
mod scenario;
mod tls;
mod wire;

mod counts;
mod dashboard;
mod kill_database;
mod kill_node;
mod panic;
mod pause_node;
mod planned_switch;
mod readiness;
mod shard_state;
mod standby;
mod stop_node;
mod wrong_shards;
