//! Why a call failed, and how that is written: always JSON, with an HTTP status of its own for each code.

use axum::body::Body;
use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use forebay_edge::rpc::{of_call, overloaded};
use forebay_types::{Reason, Refusal};
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE},
};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use prost_types::Any;
use serde::Serialize;
use serde_json::Value;
use tonic::{Code, Status};
use tonic_types::{StatusExt as _, pb};

/// The type of JSON.
pub const JSON: &str = "application/json";
/// Names the types that a POST may have.
const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

/// A failed call.
#[derive(Debug)]
pub struct Failure {
    /// The status that the router answered, or would have.
    status: Status,
    /// The HTTP status, where it is not that of the code.
    http: Option<StatusCode>,
    /// A header that says what would be right, or what happens next.
    hint: Option<(HeaderName, &'static str)>,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, http: None, hint: None }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        of_call(&refusal).into()
    }
}

impl Failure {
    /// The request is not as the protocol wants it.
    pub fn invalid(message: impl Into<String>) -> Self {
        Refusal::new(Reason::InvalidField, message).into()
    }

    /// The request asks for what is not there.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Refusal::new(Reason::Unimplemented, message).into()
    }

    /// The body has a type that is not read.
    pub(crate) fn media_type(message: String) -> Self {
        let http = Some(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let hint = Some((ACCEPT_POST, "application/json, application/proto"));
        Self { http, hint, ..Self::invalid(message) }
    }

    /// The method of HTTP is not one of `allowed`.
    pub fn method(method: &http::Method, allowed: &'static str) -> Self {
        let message = format!("{method} is not allowed here; use {allowed}");
        let http = Some(StatusCode::METHOD_NOT_ALLOWED);
        Self { http, hint: Some((ALLOW, allowed)), ..Self::unimplemented(message) }
    }

    /// The port has too many connections for one more with calls.
    pub fn crowded() -> Self {
        let message = "too many HTTP connections are open: only what operators need is still served";
        let refusal = overloaded("node.http_connections", message);
        Self { hint: Some((CONNECTION, "close")), ..refusal.into() }
    }

    /// The request names a host that this node is not.
    pub(crate) fn misdirected(message: String) -> Self {
        let refusal = Refusal::new(Reason::NotAllowed, message);
        Self { http: Some(StatusCode::MISDIRECTED_REQUEST), ..refusal.into() }
    }

    /// The response can't be translated: a bug.
    pub fn internal(message: impl Into<String>) -> Self {
        Status::internal(message).into()
    }

    /// The status that the router answered, or would have.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Its code, for the log.
    pub fn code(&self) -> Code {
        self.status.code()
    }

    /// Its message, for the log.
    pub fn message(&self) -> &str {
        self.status.message()
    }

    /// The answer. `pool` has the types of the details.
    pub fn answer(&self, pool: Option<&DescriptorPool>) -> Response<Body> {
        let code = self.status.code();
        let (name, http) = spelled(code);
        let http = self.http.unwrap_or(http);
        let details = pb::Status::decode(self.status.details()).map(|status| status.details);
        let details = details.unwrap_or_default();
        let details = details.iter().map(|any| Detail::new(any, pool)).collect();
        let document = Document { code: name, message: self.status.message(), details };
        // Strings and JSON values can be written.
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let mut answer = Response::new(Body::from(body));
        *answer.status_mut() = http;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        if let Some((name, value)) = &self.hint {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if matches!(http, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            let delay = self.status.get_details_retry_info().and_then(|info| info.retry_delay);
            let seconds = delay.unwrap_or_default().as_millis().div_ceil(1_000).max(1);
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if http == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

/// The body of a failed call.
#[derive(Serialize)]
struct Document<'a> {
    /// The code, as Connect spells it.
    code: &'static str,
    /// For people.
    message: &'a str,
    /// The details of `google.rpc`.
    details: Vec<Detail<'a>>,
}

/// One detail.
#[derive(Serialize)]
struct Detail<'a> {
    /// The full name of its type.
    r#type: &'a str,
    /// The message, encoded.
    value: String,
    /// The same as JSON, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    debug: Option<Value>,
}

impl<'a> Detail<'a> {
    fn new(any: &'a Any, pool: Option<&DescriptorPool>) -> Self {
        let name = any.type_url.rsplit('/').next().unwrap_or_default();
        let decoded = pool.and_then(|pool| pool.get_message_by_name(name));
        let decoded = decoded.and_then(|kind| DynamicMessage::decode(kind, any.value.as_slice()).ok());
        let debug = decoded.and_then(|message| serde_json::to_value(message).ok());
        Self { r#type: name, value: BASE64_STANDARD_NO_PAD.encode(&any.value), debug }
    }
}

/// The name of a code, and its HTTP status.
fn spelled(code: Code) -> (&'static str, StatusCode) {
    match code {
        Code::Cancelled => {
            ("canceled", StatusCode::from_u16(499).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        }
        Code::InvalidArgument => ("invalid_argument", StatusCode::BAD_REQUEST),
        Code::DeadlineExceeded => ("deadline_exceeded", StatusCode::GATEWAY_TIMEOUT),
        Code::NotFound => ("not_found", StatusCode::NOT_FOUND),
        Code::AlreadyExists => ("already_exists", StatusCode::CONFLICT),
        Code::PermissionDenied => ("permission_denied", StatusCode::FORBIDDEN),
        Code::ResourceExhausted => ("resource_exhausted", StatusCode::TOO_MANY_REQUESTS),
        Code::FailedPrecondition => ("failed_precondition", StatusCode::BAD_REQUEST),
        Code::Aborted => ("aborted", StatusCode::CONFLICT),
        Code::OutOfRange => ("out_of_range", StatusCode::BAD_REQUEST),
        Code::Unimplemented => ("unimplemented", StatusCode::NOT_IMPLEMENTED),
        Code::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR),
        Code::Unavailable => ("unavailable", StatusCode::SERVICE_UNAVAILABLE),
        Code::DataLoss => ("data_loss", StatusCode::INTERNAL_SERVER_ERROR),
        Code::Unauthenticated => ("unauthenticated", StatusCode::UNAUTHORIZED),
        // No failure is OK.
        Code::Ok | Code::Unknown => ("unknown", StatusCode::INTERNAL_SERVER_ERROR),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_proto::FILE_DESCRIPTOR_SET;
    use http_body_util::BodyExt as _;
    use serde_json::json;

    use super::*;
    use crate::connect::methods;

    async fn document(answer: Response<Body>) -> Value {
        assert_eq!(answer.headers()[CONTENT_TYPE], JSON);
        serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap()
    }

    #[tokio::test]
    async fn every_code_has_its_name_and_status() {
        for (code, name, http) in [
            (Code::Cancelled, "canceled", 499),
            (Code::Unknown, "unknown", 500),
            (Code::InvalidArgument, "invalid_argument", 400),
            (Code::DeadlineExceeded, "deadline_exceeded", 504),
            (Code::NotFound, "not_found", 404),
            (Code::AlreadyExists, "already_exists", 409),
            (Code::PermissionDenied, "permission_denied", 403),
            (Code::ResourceExhausted, "resource_exhausted", 429),
            (Code::FailedPrecondition, "failed_precondition", 400),
            (Code::Aborted, "aborted", 409),
            (Code::OutOfRange, "out_of_range", 400),
            (Code::Unimplemented, "unimplemented", 501),
            (Code::Internal, "internal", 500),
            (Code::Unavailable, "unavailable", 503),
            (Code::DataLoss, "data_loss", 500),
            (Code::Unauthenticated, "unauthenticated", 401),
        ] {
            let answer = Failure::from(Status::new(code, "why")).answer(None);
            assert_eq!(answer.status(), http, "{name}");
            assert_eq!(answer.headers().contains_key(RETRY_AFTER), matches!(http, 429 | 503), "{name}");
            let bearer = answer.headers().get(WWW_AUTHENTICATE).map(HeaderValue::as_bytes);
            assert_eq!(bearer, (http == 401).then_some(&b"Bearer"[..]), "{name}");
            let expected = json!({"code": name, "message": "why", "details": []});
            assert_eq!(document(answer).await, expected);
        }
    }

    #[tokio::test]
    async fn details_are_written_encoded_and_for_people() {
        let refusal = Refusal::new(Reason::Overloaded, "no").retry_after(Duration::from_millis(1_200));
        let pool = methods::pool(FILE_DESCRIPTOR_SET).unwrap();
        let answer = Failure::from(refusal).answer(Some(&pool));
        assert_eq!(answer.headers()[RETRY_AFTER], "2", "whole seconds, and none too early");
        let document = document(answer).await;
        let info = json!({
            "type": "google.rpc.ErrorInfo", "value": "CgpPVkVSTE9BREVEEgdmb3JlYmF5",
            "debug": {"reason": "OVERLOADED", "domain": "forebay"},
        });
        assert_eq!(document["details"][0], info);
        assert_eq!(document["details"][1]["debug"], json!({"retryDelay": "1.200s"}));
    }

    #[test]
    fn a_detail_of_an_unknown_type_is_written_encoded() {
        let any = Any { type_url: "type.googleapis.com/x.Y".into(), value: vec![1, 2] };
        let detail = serde_json::to_value(Detail::new(&any, Some(&DescriptorPool::new()))).unwrap();
        assert_eq!(detail, json!({"type": "x.Y", "value": "AQI"}));
    }
}
