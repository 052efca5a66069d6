//! The HTTP port.
#![doc = include_str!("../README.md")]

mod assets;
mod condition;
mod connect;
mod dashboard;
mod fields;
mod gate;
mod guard;
mod hosts;
mod html;
mod info;
mod measured;
pub mod metrics;
mod origins;
mod page_fields;
mod probes;
pub mod serve_http;
mod server;
mod streams;

#[cfg(feature = "fuzzing")]
pub use connect::fuzz_json_bodies;
pub use connect::{Connect, json_value, read_json};
pub use gate::Gate;
pub use guard::{Cookies, FormKey, Keeper, Proxies, Sessions};
pub use hosts::Hosts;
pub use info::{NodeInfo, NodeStatus};
pub use measured::MetricSources;
pub use origins::Origins;
pub use server::{HttpServer, serve};
