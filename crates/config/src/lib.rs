//! The configuration of a node.
#![doc = include_str!("../README.md")]

mod access;
mod addresses;
mod check;
mod cluster;
mod environment;
mod file;
mod grafana;
mod http;
mod keys;
mod load;
mod log_filter;
mod metrics;
mod mysql_tls;
mod page;
mod secret_file;
mod tls;
mod traces;
mod urls;
mod values;

pub use grafana::Grafana;
pub use http::HttpAccess;
pub use load::Flags;
pub use log_filter::log_filter;
pub use page::page;
pub use values::{Config, ConfigError, LogFormat, Secret, ShardConfig, ShardUrl};

#[cfg(test)]
mod tests;
