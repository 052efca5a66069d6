//! What went wrong with a call or with one member of it.

use std::{error::Error as _, fmt, time::Duration};

use forebay_types::{Fate, Reason};
use prost::Message as _;
use tonic::Code;
use tonic_types::StatusExt as _;

/// A call, or one member of it, that was not done, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Content>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    code: Code,
    reason: Option<Reason>,
    message: String,
    field: Option<String>,
    retry_after: Option<Duration>,
    fate: Option<Fate>,
    maybe_done: bool,
    transient: bool,
    /// The transport failed; no server said so.
    broken: bool,
}

impl Error {
    /// The gRPC status code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The stable reason; `None` where the error did not come from Forebay (a broken connection, a
    /// time-out) or names a reason that this version does not know.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// A sentence for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The path of the wrong field, as in `items[3].topic`.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// When the server says it is worth trying again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// With [`Reason::LeaseLost`]: where the item is.
    pub fn fate(&self) -> Option<Fate> {
        self.0.fate
    }

    /// It is not known whether it happened; in every other case it did not.
    pub fn maybe_done(&self) -> bool {
        self.0.maybe_done
    }

    /// It may go well later.
    pub fn is_transient(&self) -> bool {
        self.0.transient
    }

    /// A call that is wrong before it is sent, or an answer that makes no sense.
    pub(crate) fn local(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Content {
            code,
            reason: None,
            message: message.into(),
            field: None,
            retry_after: None,
            fate: None,
            maybe_done: false,
            transient: false,
            broken: false,
        }))
    }

    /// The same, after an earlier attempt whose outcome is not known.
    pub(crate) fn or_done(mut self) -> Self {
        self.0.maybe_done = true;
        self
    }

    /// The same, naming the server if it did not even answer.
    pub(crate) fn at(mut self, addr: &str) -> Self {
        if self.0.broken {
            self.0.message = format!("{addr}: {}", self.0.message);
        }
        self
    }

    /// An attempt that had no answer in time.
    pub(crate) fn timed_out(after: Duration) -> Self {
        let mut error = Self::local(Code::DeadlineExceeded, format!("no answer within {after:?}"));
        error.0.maybe_done = true;
        error.0.transient = true;
        error
    }

    /// A failed call.
    pub(crate) fn of_call(status: &tonic::Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == "forebay");
        let reason = info.and_then(|info| Reason::from_name(&info.reason));
        let retry_after = details.retry_info().and_then(|retry| retry.retry_delay);
        let code = if is_timeout(status) { Code::DeadlineExceeded } else { status.code() };
        // Only what Forebay itself refused is known not to have happened. Everything else (a proxy's
        // answer, a connection that broke) may have reached the server.
        let refused = match code {
            Code::DeadlineExceeded => false,
            _ => info.is_some() && reason != Some(Reason::OutcomeUnknown),
        };
        let rejected = matches!(
            code,
            Code::InvalidArgument
                | Code::FailedPrecondition
                | Code::PermissionDenied
                | Code::Unauthenticated
                | Code::Unimplemented
                | Code::OutOfRange
                | Code::NotFound
        );
        let transient = match code {
            Code::Unavailable | Code::DeadlineExceeded => true,
            Code::ResourceExhausted => retry_after.is_some(),
            // Made by the transport on this side: the connection broke.
            Code::Unknown | Code::Cancelled | Code::Internal => status.source().is_some(),
            _ => false,
        };
        Self(Box::new(Content {
            code,
            reason,
            message: sentence(status),
            field: details
                .bad_request()
                .and_then(|bad| bad.field_violations.first())
                .map(|violation| violation.field.clone()),
            retry_after,
            fate: info.and_then(|info| info.metadata.get("item")).and_then(|item| Fate::from_name(item)),
            maybe_done: !refused && !rejected,
            transient,
            broken: status.source().is_some(),
        }))
    }

    /// A failed member.
    pub(crate) fn of_member(status: &tonic_types::Status) -> Self {
        let details = status.encode_to_vec().into();
        Self::of_call(&tonic::Status::with_details(Code::from_i32(status.code), &status.message, details))
    }
}

/// Whether the deadline passed on this side; tonic calls that cancelled.
fn is_timeout(status: &tonic::Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<tonic::TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The message, and where the transport failed the cause at the bottom of it.
fn sentence(status: &tonic::Status) -> String {
    let mut cause = status.source();
    while let Some(deeper) = cause.and_then(|cause| cause.source()) {
        cause = Some(deeper);
    }
    match cause.map(ToString::to_string) {
        Some(cause) if !status.message().contains(&cause) => format!("{}: {cause}", status.message()),
        _ => status.message().to_owned(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = &self.0.message;
        match (self.0.reason, &self.0.field) {
            // Forebay's messages name reason and field themselves.
            (Some(reason), _) if message.starts_with(reason.as_str()) => f.write_str(message),
            (Some(reason), Some(field)) => write!(f, "{}: {field}: {message}", reason.as_str()),
            (Some(reason), None) => write!(f, "{}: {message}", reason.as_str()),
            (None, _) => write!(f, "{:?}: {message}", self.0.code),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use forebay_proto::Status;

    use super::*;
    use crate::testing::{refusal, refusal_with};

    #[test]
    fn every_detail_is_read() {
        let error = Error::of_member(&refusal_with(Code::FailedPrecondition, "LEASE_LOST", |details| {
            details.set_error_info("LEASE_LOST", "forebay", [("item".to_owned(), "gone".to_owned())]);
        }));
        assert_eq!((error.reason(), error.fate()), (Some(Reason::LeaseLost), Some(Fate::Gone)));
        assert!(!error.maybe_done() && !error.is_transient());

        let error = Error::of_member(&refusal_with(Code::InvalidArgument, "INVALID_FIELD", |details| {
            details.add_bad_request_violation("items[3].topic", "has a blank");
        }));
        assert_eq!(error.field(), Some("items[3].topic"));
        assert_eq!(error.to_string(), "INVALID_FIELD: items[3].topic: scripted");

        let error = Error::of_member(&refusal(Code::Unavailable, "OUTCOME_UNKNOWN", Some(5)));
        assert!(error.maybe_done() && error.is_transient());
        assert_eq!(error.retry_after(), Some(Duration::from_millis(5)));

        let error = Error::of_member(&refusal(Code::Unavailable, "SHARD_UNAVAILABLE", Some(5)));
        assert!(!error.maybe_done() && error.is_transient());
    }

    #[test]
    fn an_unavailable_without_details_may_have_happened() {
        let status = Status { code: Code::Unavailable as i32, message: "gone".into(), details: vec![] };
        let error = Error::of_member(&status);
        assert!(error.maybe_done() && error.is_transient());
        assert_eq!(error.to_string(), "Unavailable: gone");
    }

    #[test]
    fn a_quota_without_a_time_is_final() {
        assert!(!Error::of_member(&refusal(Code::ResourceExhausted, "QUOTA_EXCEEDED", None)).is_transient());
    }
}
