//! gRPC in front of the engine: one file a call, field checks in `fields`, error details in `status`,
//! limits on calls and bytes in `admission`.

mod ack;
mod active_topics;
mod admin;
mod admission;
mod dequeue;
mod enqueue;
mod extend_lease;
mod fields;
pub(crate) mod frame;
mod from;

mod members;
mod nack;
mod page_token;
mod queue;
mod refused;
mod scaler;
mod server;
mod service;
pub mod status;
mod token;
mod who_am_i;

pub use admin::{Admin, first_in_order};
pub use admission::{AdmissionLoad, LoadLimits};
pub(crate) use admission::{
    AnswerCharge, Caller, ConnectionLoad, METHODS, PROTOCOLS, Protocol, QUEUE, RequestBounds, RequestCharge,
    SERVICES, overloaded,
};
#[cfg(feature = "fuzzing")]
pub(crate) use page_token::List;
pub(crate) use page_token::PageTokens;
pub(crate) use queue::ALL_NAMESPACES;
pub use queue::{Queue, RequestRules};
pub(crate) use refused::OTHER;
pub use server::{Calls, Health, ReflectionError, Serving, serve};
pub(crate) use status::of_call;
