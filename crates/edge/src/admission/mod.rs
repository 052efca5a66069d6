//! Admission control: how many calls and bytes the node takes on, and what it answers beyond that.

mod admit;
mod answer_bytes;
mod arrival;
mod audited;
mod call;
mod call_rates;
mod calls;
mod connection;
mod deferred;
mod details;
mod lasting;
mod load;
mod measured;
mod message_members;
mod namespace_bytes;
mod request_bytes;
mod rights;
mod service;
mod side_call;
mod traced;
mod watch;
mod wire;

pub use admit::{AdmissionContext, RequestBounds};
pub use answer_bytes::AnswerCharge;
pub use call::Call;
pub use calls::{Calls, around};
pub use connection::{AdmissionListener, Caller};
pub use deferred::DeferredAnswer;
pub use load::{AdmissionLoad, ConnectionLoad, LoadLimits};
pub use measured::{METHODS, PROTOCOLS, Protocol, QUEUE, SERVICES};
pub use request_bytes::RequestCharge;
pub use rights::caller;
