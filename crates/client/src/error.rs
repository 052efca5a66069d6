//! The error of a call, or of one member of it.

use std::{error::Error as _, fmt, time::Duration};

use forebay_types::{Fate, Reason};
use prost::Message as _;
use tonic::Code;
use tonic_types::StatusExt as _;

/// Why a call, or one member of it, failed or may have failed.
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
    /// The transport failed; no server answered.
    disconnected: bool,
}

impl Error {
    /// The gRPC status code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The stable reason. `None` if the error did not come from Forebay (a broken connection, a timeout), or
    /// if this version does not know the reason.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// Message for people: what happened.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The path of the invalid field, as in `items[3].topic`.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The server's retry delay.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// With [`Reason::LeaseLost`]: where the item is.
    pub fn fate(&self) -> Option<Fate> {
        self.0.fate
    }

    /// Whether the call may have taken effect. If false, it certainly had none.
    pub fn maybe_done(&self) -> bool {
        self.0.maybe_done
    }

    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        self.0.transient
    }

    /// Whether the server could not be asked: nobody listens, or the connection broke.
    pub fn is_disconnected(&self) -> bool {
        self.0.disconnected
    }

    /// An error of this side: an invalid argument, or an invalid answer.
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
            disconnected: false,
        }))
    }

    /// The same, after an earlier attempt whose outcome is unknown.
    pub(crate) fn or_done(mut self) -> Self {
        self.0.maybe_done = true;
        self
    }

    /// The same, naming the server if the connection failed.
    pub(crate) fn at(mut self, addr: &str) -> Self {
        if self.0.disconnected {
            self.0.message = format!("cannot reach {addr}: {}", self.0.message);
        }
        self
    }

    /// Nobody could be asked.
    pub(crate) fn unreachable(address: &str, why: &str) -> Self {
        let mut error = Self::local(Code::Unavailable, format!("cannot reach {address}: {why}"));
        error.0.transient = true;
        error.0.disconnected = true;
        error
    }

    /// Whether another server may do at once what this one did not: this one is out of reach, stops, is
    /// silent, does not own the shard, or does not reach it.
    pub(crate) fn another_may_serve(&self) -> bool {
        match (self.0.code, self.0.reason) {
            (Code::Unavailable, Some(Reason::NodeDraining | Reason::NotOwner | Reason::ShardUnavailable)) => {
                true
            }
            // Not Forebay's, since it names no reason and no delay.
            (Code::Unavailable, None) => self.0.retry_after.is_none(),
            (Code::DeadlineExceeded, _) => true,
            _ => self.0.disconnected && self.0.transient,
        }
    }

    /// The same, but for a server that works and merely cannot serve that shard.
    pub(crate) fn is_servers_fault(&self) -> bool {
        let of_shard = matches!(self.0.reason, Some(Reason::NotOwner | Reason::ShardUnavailable));
        self.another_may_serve() && !of_shard
    }

    /// The same with the messages of all of these, which are about different servers.
    pub(crate) fn with_others<'a>(mut self, errors: impl Iterator<Item = &'a Self>) -> Self {
        self.0.message = errors.map(Self::message).collect::<Vec<_>>().join("; ");
        self
    }

    /// An attempt without an answer in time.
    pub(crate) fn timed_out(addr: &str, after: Duration) -> Self {
        let message = format!("no answer from {addr} within {after:?}");
        let mut error = Self::local(Code::DeadlineExceeded, message);
        error.0.maybe_done = true;
        error.0.transient = true;
        error
    }

    /// The error of a call.
    pub(crate) fn of_call(status: &tonic::Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == "forebay");
        let reason = info.and_then(|info| Reason::from_name(&info.reason));
        let retry_after = details.retry_info().and_then(|retry| retry.retry_delay);
        let code = if is_timeout(status) { Code::DeadlineExceeded } else { status.code() };
        // Only a refusal by Forebay itself is known to have had no effect. Everything else (a proxy's
        // answer, a broken connection) may have reached the server.
        let refused = match code {
            Code::DeadlineExceeded => false,
            _ => {
                info.is_some() && !matches!(reason, Some(Reason::OutcomeUnknown | Reason::CatalogUnavailable))
            }
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
            // The transport on this side made the status: the connection broke.
            Code::Unknown | Code::Cancelled | Code::Internal => status.source().is_some(),
            _ => false,
        };
        Self(Box::new(Content {
            code,
            reason,
            message: message(status),
            field: details
                .bad_request()
                .and_then(|bad| bad.field_violations.first())
                .map(|violation| violation.field.clone()),
            retry_after,
            fate: info.and_then(|info| info.metadata.get("item")).and_then(|item| Fate::from_name(item)),
            maybe_done: !refused && !rejected,
            transient,
            disconnected: status.source().is_some(),
        }))
    }

    /// The error of a member of an answer.
    pub fn of_member(status: &tonic_types::Status) -> Self {
        let details = status.encode_to_vec().into();
        Self::of_call(&tonic::Status::with_details(Code::from_i32(status.code), &status.message, details))
    }
}

/// Whether the deadline passed on this side. Tonic reports that as cancelled.
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

/// The message, with the root cause if the transport failed.
fn message(status: &tonic::Status) -> String {
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
            // Forebay's own messages begin with the reason.
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
    fn every_detail_is_decoded() {
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
