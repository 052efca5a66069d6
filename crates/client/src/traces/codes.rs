//! How errors are spelled in spans.

use tonic::Code;

use crate::error::Error;

/// The kind of an error: the reason of the server's refusal, or the code as gRPC spells it.
pub(super) fn error_type(error: &Error) -> &'static str {
    error.reason().map_or_else(|| of_grpc(error.code()), |reason| reason.as_str())
}

/// A code as gRPC spells it.
fn of_grpc(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => CANCELLED,
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// Nobody waits for the operation any more.
pub(super) const CANCELLED: &str = "CANCELLED";
