//! From a socket to an admitted call.
#![doc = include_str!("../README.md")]

pub mod access;
pub mod admission;
pub mod audit;
pub mod browsers;
pub mod connections;
pub mod listen;
pub mod random;
pub mod request_ids;
pub mod rpc;
pub mod signing;
pub mod tls;
pub mod traces;
pub mod turns;
