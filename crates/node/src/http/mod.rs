//! HTTP for operators: the dashboard, the metrics and the probes.
//!
//! The pages show all tenants, so only operators should reach this port.

mod info;
pub mod metrics;
mod page;
mod probes;
mod server;

pub use info::{NodeInfo, NodeStatus};
pub use server::{HttpServing, serve};
