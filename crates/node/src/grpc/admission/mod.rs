//! Admission control: how many calls and bytes the node takes on, and what it answers beyond that.

mod answer_bytes;
mod call;
mod connection;
mod layer;
mod load;
mod message_members;
mod namespace_bytes;
mod request_bytes;
mod side_call;
mod watch;

pub use call::Call;
pub use connection::Incoming;
pub use layer::{AdmissionLayer, RequestBounds};
pub use load::{AdmissionLoad, LoadLimits};
