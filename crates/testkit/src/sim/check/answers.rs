//! BATCH-ATTRIBUTION and, in runs where nothing goes wrong, that everything is answered.

use forebay_types::{Reason, Refusal};

use super::{Case, Finding};
use crate::{
    fake::POISON,
    sim::history::{Answer, Call, What},
};

pub(super) fn check(case: &Case, found: &mut Vec<Finding>) {
    for call in &case.calls {
        match &call.what {
            What::Enqueue { items, request_id, answer } => {
                // A call with a request id is stored whole, or refused whole.
                let whole = request_id.is_some() && items.iter().any(|item| item.poison);
                for (at, item) in items.iter().enumerate() {
                    // A duplicate is not stored, so it may be anything.
                    let stored = answer.member(at).filter(|result| !result.is_ok_and(|done| done.duplicate));
                    let stored = stored.filter(|result| !whole || result.is_ok());
                    member(call, item.poison, stored.map(|result| result.map(drop)), found);
                }
                refused(case, call, answer, found);
            }
            What::Nack { nacks, answer } => {
                for (at, nack) in nacks.iter().enumerate() {
                    let poison = nack.metadata.as_ref().is_some_and(|bytes| bytes.starts_with(POISON));
                    // An item that goes by itself needs no metadata, so a poisoned nack may succeed.
                    let result = answer.member(at).map(|result| result.map(drop)).filter(Result::is_err);
                    member(call, poison, result, found);
                }
                refused(case, call, answer, found);
            }
            What::Ack { receipts, answer } => {
                for at in 0..receipts.len() {
                    member(call, false, answer.member(at).map(|result| result.map(drop)), found);
                }
                refused(case, call, answer, found);
            }
            What::Extend { answer, .. } => refused(case, call, answer, found),
            What::Dequeue { answer, .. } => refused(case, call, answer, found),
        }
    }
}

/// A member that can't be stored is refused; one that can is not refused for its sake.
fn member(call: &Call, poison: bool, result: Option<Result<(), &Refusal>>, found: &mut Vec<Finding>) {
    let name = format!("a member of call {}", call.start.event);
    match result {
        Some(Ok(())) if poison => {
            found.push(("BATCH-ATTRIBUTION", format!("{name} can't be stored, and was answered OK")));
        }
        Some(Err(refusal)) if !poison && !passing(refusal.reason) => {
            found.push(("BATCH-ATTRIBUTION", format!("{name} was refused: {refusal}")));
        }
        _ => {}
    }
}

/// Reasons that lie not in the member, but in the moment.
fn passing(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::LeaseLost
            | Reason::ShardUnavailable
            | Reason::NotOwner
            | Reason::NodeDraining
            | Reason::OutcomeUnknown
            | Reason::DeadlineExceeded
            | Reason::DiskFull
            | Reason::Overloaded
            | Reason::TooManyLeased
    )
}

/// Where nothing goes wrong, no call is refused or left without an answer.
fn refused<T>(case: &Case, call: &Call, answer: &Answer<T>, found: &mut Vec<Finding>) {
    if !case.strict {
        return;
    }
    match answer {
        Answer::Done(_) => {}
        Answer::Refused(refusal) => {
            found.push(("CLEAN-DRAIN", format!("call {} of a quiet run: {refusal}", call.start.event)));
        }
        Answer::Lost => {
            found.push(("CLEAN-DRAIN", format!("call {} of a quiet run was not answered", call.start.event)));
        }
    }
}
