//! Every call as JSON over HTTP: the Connect protocol, for methods with one request and one response.
//!
//! A request becomes a request of gRPC to the same router that the gRPC port serves, so that every check,
//! limit and metric holds here too. What is added is the translation: `service` is the index of its steps.

mod deadline;
mod failure;
mod frame;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod gzip;
mod heavy;
mod json;
mod json_free_text;
mod json_shape;
mod media;
mod metadata;
mod methods;
mod query;
mod request;
mod response;
mod service;

pub use failure::Failure;
#[cfg(feature = "fuzzing")]
pub use fuzzing::fuzz_json_bodies;
pub use json::{read as read_json, to_value as json_value};
pub use service::{Connect, PATHS};
