//! Turns refusals into gRPC statuses with error details. No other file does.

use std::time::Duration;

use bytes::Bytes;
use forebay_engine::{Settlement, SettlementResult};
use forebay_proto::v1::SettleResult;
use forebay_types::{Reason, Refusal};
use prost::Message;
use prost_types::Any;
use tonic::Code;
use tonic_types::pb;

use super::refused;

/// The domain in every `ErrorInfo`.
const DOMAIN: &str = "forebay";

/// The retry delay of a refusal that names none.
const RETRY_DELAY_DEFAULT: Duration = Duration::from_secs(1);

/// The refusal of a whole call.
pub fn of_call(refusal: &Refusal) -> tonic::Status {
    let status = of_member(refusal);
    let details = Bytes::from(status.encode_to_vec());
    tonic::Status::with_details(code(refusal.reason), status.message, details)
}

/// The refusal of one member of a call.
pub fn of_member(refusal: &Refusal) -> pb::Status {
    refused::count(refusal.reason);
    of_shown(refusal)
}

/// Why something went wrong, for those who look at it. Nothing is refused.
pub fn of_shown(refusal: &Refusal) -> pb::Status {
    let code = code(refusal.reason);
    let mut details = vec![info(refusal)];
    if let Some(field) = &refusal.field {
        details.push(bad_request(field, refusal));
    }
    if let Some(retry_delay) = retry_after(refusal) {
        details.push(any("RetryInfo", &pb::RetryInfo { retry_delay: Some(retry_delay) }));
    }
    if let Some(subject) = quota(refusal) {
        details.push(quota_failure(subject, refusal));
    }
    pb::Status { code: code as i32, message: refusal.to_string(), details }
}

/// Fields of a refused member's result: the error, and beside it the values for callers without the types of
/// its details.
pub struct RefusalFields {
    /// With its details.
    pub error: Option<pb::Status>,
    /// The reason of the `ErrorInfo`.
    pub reason: String,
    /// The delay of the `RetryInfo`, if there is one.
    pub retry_after: Option<prost_types::Duration>,
}

/// The fields of a refused member's result.
pub fn of_result(refusal: &Refusal) -> RefusalFields {
    RefusalFields {
        error: Some(of_member(refusal)),
        reason: refusal.reason.as_str().to_owned(),
        retry_after: retry_after(refusal),
    }
}

/// The result of one ack or nack.
pub fn of_settled(settled: SettlementResult) -> SettleResult {
    match settled {
        Ok(Settlement { delay_cut }) => SettleResult { delay_cut, ..SettleResult::default() },
        Err(refusal) => {
            let RefusalFields { error, reason, retry_after } = of_result(&refusal);
            SettleResult { error, reason, retry_after, delay_cut: false }
        }
    }
}

/// When a call that was refused may be repeated at the earliest. `None`: it would be refused again.
fn retry_after(refusal: &Refusal) -> Option<prost_types::Duration> {
    let retryable = matches!(code(refusal.reason), Code::Unavailable | Code::ResourceExhausted);
    let delay = refusal.retry_after.unwrap_or(RETRY_DELAY_DEFAULT);
    // A delay too long for protobuf does not occur; it would only lose the hint.
    retryable.then(|| delay.try_into().ok()).flatten()
}

/// The gRPC code of a reason, as `docs/PROTOCOL.md` lists it.
pub const fn code(reason: Reason) -> Code {
    match reason {
        Reason::InvalidField | Reason::TooLarge | Reason::InvalidReceipt => Code::InvalidArgument,
        Reason::LeaseLost
        | Reason::TopicPaused
        | Reason::ShardDraining
        | Reason::OperationEnded
        | Reason::ExpectationFailed
        | Reason::NotEmpty
        | Reason::ItemLeased
        | Reason::ItemDead
        | Reason::ItemUnreadable
        | Reason::LastAdmin
        | Reason::ShardInUse
        | Reason::CatalogTokensOff => Code::FailedPrecondition,
        Reason::WrongNamespace | Reason::NotAllowed | Reason::ScopeMissing => Code::PermissionDenied,
        Reason::NoCredentials | Reason::BadCredentials => Code::Unauthenticated,
        Reason::QuotaExceeded
        | Reason::RateLimited
        | Reason::Overloaded
        | Reason::TooManyLeased
        | Reason::TooManyTopics
        | Reason::TooManyPolicies
        | Reason::TooManyTokens
        | Reason::DiskFull => Code::ResourceExhausted,
        Reason::ShardUnavailable
        | Reason::NotOwner
        | Reason::NodeDraining
        | Reason::CatalogUnavailable
        | Reason::OutcomeUnknown => Code::Unavailable,
        Reason::Unimplemented => Code::Unimplemented,
        Reason::DeadlineExceeded => Code::DeadlineExceeded,
        Reason::TopicNotFound
        | Reason::ItemNotFound
        | Reason::OperationNotFound
        | Reason::NamespaceNotFound
        | Reason::TokenNotFound
        | Reason::ShardNotFound
        | Reason::NodeNotFound => Code::NotFound,
        Reason::VersionMismatch => Code::Aborted,
        Reason::RequestIdReused => Code::AlreadyExists,
    }
}

/// The subject of the quota that a refusal reports.
fn quota(refusal: &Refusal) -> Option<&'static str> {
    match refusal.reason {
        Reason::RateLimited => Some(refusal.subject.unwrap_or("namespace")),
        Reason::QuotaExceeded | Reason::TooManyTopics | Reason::TooManyPolicies | Reason::TooManyTokens => {
            Some("namespace")
        }
        Reason::TooManyLeased => Some("topic"),
        _ => None,
    }
}

fn info(refusal: &Refusal) -> Any {
    let fate = refusal.fate.map(|fate| ("item".to_owned(), fate.as_str().to_owned()));
    let scope = refusal.subject.filter(|_| refusal.reason == Reason::ScopeMissing);
    let scope = scope.map(|scope| ("scope".to_owned(), scope.to_owned()));
    let info = pb::ErrorInfo {
        reason: refusal.reason.as_str().to_owned(),
        domain: DOMAIN.to_owned(),
        metadata: fate.into_iter().chain(scope).collect(),
    };
    any("ErrorInfo", &info)
}

fn bad_request(field: &str, refusal: &Refusal) -> Any {
    let violation = pb::bad_request::FieldViolation {
        field: field.to_owned(),
        description: refusal.message.clone(),
        reason: refusal.reason.as_str().to_owned(),
        localized_message: None,
    };
    any("BadRequest", &pb::BadRequest { field_violations: vec![violation] })
}

fn quota_failure(subject: &str, refusal: &Refusal) -> Any {
    let violation = pb::quota_failure::Violation {
        subject: subject.to_owned(),
        description: refusal.message.clone(),
        ..Default::default()
    };
    any("QuotaFailure", &pb::QuotaFailure { violations: vec![violation] })
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value: message.encode_to_vec() }
}

#[cfg(test)]
mod tests {
    use forebay_types::Fate;
    use tonic_types::{RpcStatusExt as _, StatusExt as _};

    use super::*;

    #[test]
    fn every_refusal_has_error_info() {
        for reason in Reason::ALL {
            let details = of_call(&Refusal::new(reason, "no")).get_error_details();
            let info = details.error_info().unwrap();
            assert_eq!((info.domain.as_str(), info.reason.as_str()), (DOMAIN, reason.as_str()));
        }
    }

    #[test]
    fn a_retryable_refusal_has_a_retry_delay() {
        for reason in Reason::ALL {
            let retryable = matches!(code(reason), Code::Unavailable | Code::ResourceExhausted);
            let given = Refusal::new(reason, "no").retry_after(Duration::from_millis(250));
            for (refusal, after) in
                [(Refusal::new(reason, "no"), RETRY_DELAY_DEFAULT), (given, Duration::from_millis(250))]
            {
                let details = of_member(&refusal).get_error_details();
                let found = details.retry_info().and_then(|info| info.retry_delay);
                assert_eq!(found, retryable.then_some(after), "{reason:?}");
                let result = of_settled(Err(refusal));
                assert_eq!(result.retry_after, found.and_then(|delay| delay.try_into().ok()), "{reason:?}");
                assert_eq!(result.reason, reason.as_str());
                assert_eq!(result.error.unwrap().get_details_retry_info().and_then(|i| i.retry_delay), found);
            }
        }
    }

    #[test]
    fn a_wrong_field_is_named() {
        let details = of_member(&Refusal::field("items[3].topic", "is empty")).get_error_details();
        let violation = &details.bad_request().unwrap().field_violations[0];
        assert_eq!(
            (violation.field.as_str(), violation.description.as_str()),
            ("items[3].topic", "is empty")
        );
        assert!(
            of_member(&Refusal::new(Reason::Overloaded, "no")).get_error_details().bad_request().is_none()
        );
    }

    #[test]
    fn a_missing_right_is_named() {
        let details = of_member(&Refusal::scope_missing("produce", "no")).get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((&*info.reason, &*info.metadata["scope"]), ("SCOPE_MISSING", "produce"));
    }

    /// The subject of the quota in the details.
    fn named(refusal: &Refusal) -> Option<String> {
        let details = of_member(refusal).get_error_details();
        details.quota_failure().map(|failure| failure.violations[0].subject.clone())
    }

    #[test]
    fn a_quota_is_named() {
        for reason in Reason::ALL {
            let refusal = Refusal::new(reason, "no");
            assert_eq!(named(&refusal).as_deref(), quota(&refusal), "{reason:?}");
        }
        assert_eq!(named(&Refusal::new(Reason::QuotaExceeded, "no")).as_deref(), Some("namespace"));
        let subject = Some("limits.a_rate");
        let limited = Refusal { subject, ..Refusal::new(Reason::RateLimited, "no") };
        assert_eq!(named(&limited).as_deref(), subject);
    }

    #[test]
    fn a_lost_lease_says_where_the_item_is() {
        for fate in [Fate::Gone, Fate::Waiting, Fate::Leased, Fate::Dead] {
            let status = of_member(&Refusal::lease_lost(fate));
            assert_eq!(status.code, Code::FailedPrecondition as i32);
            let details = status.get_error_details();
            assert_eq!(details.error_info().unwrap().metadata["item"], fate.as_str());
        }
    }
}
