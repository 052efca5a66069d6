//! Admission control: how many calls and bytes the node takes on, and what it answers beyond that.

mod answer_bytes;
mod call;
mod connection;
mod details;
mod lasting;
mod layer;
mod load;
mod measured;
mod message_members;
mod namespace_bytes;
mod request_bytes;
mod rights;
mod side_call;
mod watch;
mod wire;

pub use answer_bytes::AnswerCharge;
pub use call::Call;
pub use connection::{AdmissionListener, Caller};
pub use layer::{Admission, AdmissionLayer, RequestBounds};
pub use load::{AdmissionLoad, ConnectionLoad, LoadLimits};
pub use measured::{METHODS, PROTOCOLS, Protocol, QUEUE, SERVICES};
pub use request_bytes::RequestCharge;
pub use rights::caller;

/// Every call, with its limits: what the gRPC port serves. A request has the load of its connection among its
/// extensions.
pub type Calls = Admission<tonic::service::Routes>;
