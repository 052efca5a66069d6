//! HTTP for operators: the dashboard, the metrics and the probes.
//!
//! The pages show all tenants, so only operators should reach this port.

mod condition;
mod info;
pub mod metrics;
mod page;
mod probes;
mod server;
mod status_cache;

pub use info::{NodeInfo, NodeStatus};
pub use server::{HttpServing, serve};
pub use status_cache::StatusCache;
