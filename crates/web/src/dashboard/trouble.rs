//! Why a page can't be shown, or an act was not done.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use maud::html;
use tonic::{Code, Status};

use crate::html::message;

/// Why a page can't be shown.
#[derive(Debug)]
pub struct Trouble {
    /// Of the answer.
    pub status: StatusCode,
    /// The heading.
    pub title: &'static str,
    /// The message, as a sentence without its end.
    pub message: String,
}

impl Trouble {
    /// A field of the page's address, or of its form, is wrong.
    pub fn field(name: &str, what: &str) -> Self {
        let message = format!("the field {name} {what}");
        Self { status: StatusCode::BAD_REQUEST, title: "Not understood", message }
    }

    /// The node is about to end.
    pub fn stopping() -> Self {
        let message = "the node is stopping".to_owned();
        Self { status: StatusCode::SERVICE_UNAVAILABLE, title: "Try again later", message }
    }
}

impl From<Status> for Trouble {
    fn from(status: Status) -> Self {
        let (code, title) = match status.code() {
            Code::InvalidArgument | Code::OutOfRange => (StatusCode::BAD_REQUEST, "Not understood"),
            Code::NotFound => (StatusCode::NOT_FOUND, "Not found"),
            Code::PermissionDenied | Code::Unauthenticated => (StatusCode::FORBIDDEN, "Not allowed"),
            Code::FailedPrecondition | Code::AlreadyExists | Code::Aborted => {
                (StatusCode::CONFLICT, "Not done")
            }
            Code::ResourceExhausted => (StatusCode::TOO_MANY_REQUESTS, "Too much at once"),
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => {
                (StatusCode::SERVICE_UNAVAILABLE, "Try again later")
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "This failed"),
        };
        Self { status: code, title, message: status.message().to_owned() }
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let said = html! { p { (self.message) "." } p { a href="./" { "First page" } } };
        message(self.status, self.title, said)
    }
}
