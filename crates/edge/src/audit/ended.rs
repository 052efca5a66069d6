//! How a call ended, and what is kept of it.

use forebay_store::{AuditEnd, AuditId, AuditOutcome, AuditRecord};
use http::Response;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{
    record::{AuditNote, log, record_bytes},
    text::clean,
};

/// Bytes that are kept of the reason and of the summary of a call that has changed nothing.
const SHORT_BYTES: usize = 64;

/// End of a call, as its response tells it.
pub struct CallEnd {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Whether that says for certain that nothing has happened.
    pub has_no_effect: bool,
}

impl CallEnd {
    /// Of a response.
    pub fn of<B>(response: &Response<B>) -> Self {
        let none = Self { failure: None, has_no_effect: false };
        let Some(status) = Status::from_header_map(response.headers()) else { return none };
        if status.code() == Code::Ok {
            return none;
        }
        let reason = status.get_details_error_info().map(|info| info.reason);
        let failure = Some(clean(&reason.unwrap_or_else(|| format!("{:?}", status.code())), 64));
        let has_no_effect = matches!(
            status.code(),
            Code::InvalidArgument
                | Code::NotFound
                | Code::AlreadyExists
                | Code::FailedPrecondition
                | Code::PermissionDenied
                | Code::ResourceExhausted
        );
        Self { failure, has_no_effect }
    }
}

/// How a call ended, and how many bytes are kept of it. The log has it from now on. Of a call that has
/// changed nothing less is kept: whoever makes many of these must not fill the log with their texts.
pub fn ended(mut record: AuditRecord, how: CallEnd, note: &AuditNote) -> (AuditId, AuditEnd, usize) {
    let CallEnd { failure, has_no_effect } = how;
    record.outcome = if failure.is_some() { AuditOutcome::Failed } else { AuditOutcome::Done };
    record.failure = failure.unwrap_or_default();
    record.operation_id = clean(&note.operation_id, 32);
    let target = clean(&note.target, 255);
    if !target.is_empty() {
        record.target.clone_from(&target);
    }
    if has_no_effect {
        shorten(&mut record);
    }
    log(&record);
    let kept = record_bytes(&record);
    let AuditRecord { id, outcome, failure, operation_id, reason, summary, .. } = record;
    let shortened = has_no_effect.then_some((reason, summary));
    (id, AuditEnd { outcome, failure, target, operation_id, shortened }, kept)
}

/// Leaves the beginning of the texts that a caller may write at will.
pub fn shorten(record: &mut AuditRecord) {
    record.reason = clean(&record.reason, SHORT_BYTES);
    record.summary = clean(&record.summary, SHORT_BYTES);
}

#[cfg(test)]
mod tests {
    use forebay_store::PrincipalKind;
    use forebay_types::{Reason, Refusal, Timestamp};

    use super::*;
    use crate::rpc::of_call;

    fn record() -> AuditRecord {
        let (token_id, peer, namespace, target, failure, operation_id, node, trace_id) = Default::default();
        let texts = || "r".repeat(1_024);
        AuditRecord {
            id: AuditId::new(Timestamp::from_micros(1), [0; 8]),
            principal: String::new(),
            kind: PrincipalKind::Token,
            token_id,
            peer,
            method: "UpdateItem".to_owned(),
            namespace,
            target,
            reason: texts(),
            summary: texts(),
            outcome: AuditOutcome::Intended,
            failure,
            operation_id,
            node,
            trace_id,
        }
    }

    #[test]
    fn little_is_kept_of_a_call_that_has_changed_nothing() {
        let after = |reason| {
            let response = of_call(&Refusal::new(reason, "no")).into_http::<()>();
            let (_, end, kept) = ended(record(), CallEnd::of(&response), &AuditNote::default());
            (end.failure, end.shortened.map(|(reason, _)| reason.len()), kept)
        };
        let (failure, reason, kept) = after(Reason::ItemNotFound);
        assert_eq!((failure.as_str(), reason), ("ITEM_NOT_FOUND", Some(SHORT_BYTES)));
        assert!(kept < 400, "{kept}");
        for unknown in [Reason::OutcomeUnknown, Reason::ShardUnavailable, Reason::DeadlineExceeded] {
            let (_, reason, kept) = after(unknown);
            assert_eq!((reason, kept), (None, record_bytes(&record())), "it may have happened");
        }
        let done = ended(record(), CallEnd { failure: None, has_no_effect: false }, &AuditNote::default());
        assert_eq!((done.1.outcome, done.1.shortened), (AuditOutcome::Done, None));
    }
}
