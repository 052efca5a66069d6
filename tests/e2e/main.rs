//! One binary for every end-to-end test: real processes of `forebay`, real database servers, and a checker
//! that reads what clients saw.
//!
//! Each test puts a node under load ([`load`]), does something bad to it, heals and drains it, and then has
//! the whole history ([`history`]) checked ([`check`]). `FOREBAY_E2E_ROUNDS` sets how often a test does it.

mod backend;
mod check;
mod drain;
mod history;
mod load;
mod node;
mod rpc;
mod scene;
mod wire;

mod kill_database;
mod kill_node;
mod pause_node;
mod stop_node;
