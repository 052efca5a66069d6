//! How errors are spelled in spans.

use forebay_proto::codes::spelled;
use tonic::Code;

use crate::error::Error;

/// Nobody waits for the operation any more.
pub(super) const CANCELLED: &str = spelled(Code::Cancelled);

/// The kind of an error: the reason of the server's refusal, or the code as gRPC spells it.
pub(super) fn error_type(error: &Error) -> &'static str {
    error.reason().map_or_else(|| spelled(error.code()), |reason| reason.as_str())
}
