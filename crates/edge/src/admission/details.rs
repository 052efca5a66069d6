//! A refusal that tonic made by itself gets its error details.

use forebay_types::{Reason, Refusal};
use http::Response;
use tonic::{Code, Status, body::Body};

use crate::rpc::status;

/// Adds error details to a refusal that tonic made before a handler saw the call.
pub fn add_details(response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    if !status.details().is_empty() {
        return response;
    }
    let message = status.message();
    let refusal = match status.code() {
        Code::OutOfRange => Refusal::new(Reason::TooLarge, message),
        // A body that is not protobuf, is truncated, or has invalid framing.
        Code::Internal => Refusal::new(Reason::InvalidField, format!("cannot decode the request: {message}")),
        Code::Unimplemented => Refusal::new(Reason::Unimplemented, message),
        Code::ResourceExhausted => Refusal::new(Reason::Overloaded, message),
        _ => return response,
    };
    status::of_call(&refusal).into_http()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_tonic_gets_details() {
        use tonic_types::StatusExt as _;
        for (status, code, reason) in [
            (Status::out_of_range("big"), Code::InvalidArgument, "TOO_LARGE"),
            (Status::internal("cut"), Code::InvalidArgument, "INVALID_FIELD"),
            (Status::unimplemented("what"), Code::Unimplemented, "UNIMPLEMENTED"),
        ] {
            let response = add_details(status.into_http());
            let status = Status::from_header_map(response.headers()).unwrap();
            assert_eq!(status.code(), code);
            assert_eq!(status.get_details_error_info().unwrap().reason, reason);
        }
    }
}
