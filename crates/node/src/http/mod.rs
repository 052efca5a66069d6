//! HTTP: the dashboard, the metrics and the probes for operators, and every call as JSON.
//!
//! The pages show all tenants, so only operators and trusted callers should reach this port.

mod assets;
mod condition;
mod connect;
mod dashboard;
mod fields;
mod gate;
mod grafana;
mod guard;
mod hosts;
mod html;
mod info;
mod measured;
pub mod metrics;
mod origins;
mod page_fields;
mod probes;
mod server;
mod status_cache;

#[cfg(feature = "fuzzing")]
pub use connect::fuzz_json_bodies;
pub use connect::{Connect, json_value, read_json};
pub use gate::Gate;
pub use grafana::Grafana;
pub use guard::{Cookies, FormKey, Keeper, Proxies, Sessions};
pub use hosts::Hosts;
pub use info::{NodeInfo, NodeStatus};
pub use measured::Measured;
pub use origins::Origins;
pub use server::{HttpServing, serve};
pub use status_cache::StatusCache;
