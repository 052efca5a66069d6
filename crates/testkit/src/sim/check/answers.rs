//! BATCH-ATTRIBUTION, and that every call is answered in runs without faults.

use std::collections::{HashMap, HashSet};

use forebay_engine::{ChangeCall, ItemChange};
use forebay_types::{Namespace, Reason, Refusal};

use super::record::{Finding, RunRecord};
use crate::{
    fake::{Moment, POISON},
    sim::history::{Answer, Call, CallerKnowledge, What, known_after},
};

pub(super) fn check(record: &RunRecord, found: &mut Vec<Finding>) {
    let reused = reused_ids(record);
    for call in &record.calls {
        stopped(record, call, found);
        match &call.what {
            What::Enqueue { items, answer, request_id } => {
                let is_reused =
                    request_id.as_deref().is_some_and(|id| reused.contains(&(&call.namespace, id)));
                for (at, item) in items.iter().enumerate() {
                    // A duplicate is not stored, so its content does not matter.
                    let stored = answer.member(at).filter(|result| !result.is_ok_and(|done| done.duplicate));
                    // Where processes begin with other shards, only calls name those that are gone.
                    let removed = record.shards_change && item.shard.is_some() || request_id.is_some();
                    let names_it = |refusal: &Refusal| refusal.reason == Reason::InvalidField;
                    let stored = stored.filter(|result| !(removed && result.is_err_and(names_it)));
                    let names_id = |refusal: &Refusal| refusal.reason == Reason::RequestIdReused;
                    let stored = stored.filter(|result| !(is_reused && result.is_err_and(names_id)));
                    member(call, item.poison, stored.map(|result| result.map(drop)), found);
                }
                refused(record, call, answer, found);
            }
            What::Nack { nacks, answer } => {
                for (at, nack) in nacks.iter().enumerate() {
                    let poison = nack.metadata.as_ref().is_some_and(|bytes| bytes.starts_with(POISON));
                    // An item that expires needs no metadata, so a poisoned nack may succeed.
                    let result = answer.member(at).map(|result| result.map(drop)).filter(Result::is_err);
                    member(call, poison, result, found);
                }
                refused(record, call, answer, found);
            }
            What::Ack { receipts, answer } => {
                for at in 0..receipts.len() {
                    member(call, false, answer.member(at).map(|result| result.map(drop)), found);
                }
                refused(record, call, answer, found);
            }
            What::Change { call: asked, answer } => {
                for at in 0..asked.items.len() {
                    let result = answer.member(at).map(|result| result.map(drop));
                    let unfit = |refusal: &Refusal| does_not_fit(asked, refusal);
                    member(call, false, result.filter(|result| !result.is_err_and(unfit)), found);
                }
                refused(record, call, answer, found);
            }
            What::Extend { answer, .. } => refused(record, call, answer, found),
            What::Dequeue { answer, .. } => refused(record, call, answer, found),
            What::ActiveTopics { answer, .. } => refused(record, call, answer, found),
        }
    }
}

/// The request ids under which calls with different items were made.
fn reused_ids(record: &RunRecord) -> HashSet<(&Namespace, &str)> {
    let mut calls: HashMap<_, HashSet<Vec<u64>>> = HashMap::new();
    for call in &record.calls {
        if let What::Enqueue { items, request_id: Some(id), .. } = &call.what {
            let tags = items.iter().map(|sent| sent.tag).collect();
            calls.entry((&call.namespace, id.as_str())).or_default().insert(tags);
        }
    }
    calls.into_iter().filter(|(_, calls)| calls.len() > 1).map(|(id, _)| id).collect()
}

/// Whether the item itself is no such item as can be changed so: see `changes.rs` and `updates.rs`.
fn does_not_fit(asked: &ChangeCall, refusal: &Refusal) -> bool {
    let is_update = asked.change != ItemChange::Cancel;
    match refusal.reason {
        Reason::ItemNotFound => true,
        Reason::ItemLeased | Reason::ItemDead => is_update,
        // It would be due after its end.
        Reason::InvalidField => is_update && refusal.field.is_some(),
        _ => false,
    }
}

/// A member that cannot be stored is refused. It does not cause the refusal of other members.
fn member(call: &Call, poison: bool, result: Option<Result<(), &Refusal>>, found: &mut Vec<Finding>) {
    let name = format!("a member of call {}", call.start.event);
    match result {
        Some(Ok(())) if poison => {
            found.push(("BATCH-ATTRIBUTION", format!("{name} cannot be stored and was answered OK")));
        }
        Some(Err(refusal)) if !poison && !passing(refusal.reason) => {
            found.push(("BATCH-ATTRIBUTION", format!("{name} was refused: {refusal}")));
        }
        _ => {}
    }
}

/// Reasons that do not depend on the member.
fn passing(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::LeaseLost
            | Reason::ShardUnavailable
            | Reason::NotOwner
            | Reason::ShardDraining
            | Reason::NodeDraining
            | Reason::OutcomeUnknown
            | Reason::DeadlineExceeded
            | Reason::DiskFull
            | Reason::Overloaded
            | Reason::TooManyLeased
    )
}

/// Without faults, no call is refused or left without an answer.
fn refused<T>(record: &RunRecord, call: &Call, answer: &Answer<T>, found: &mut Vec<Finding>) {
    if !record.strict {
        return;
    }
    match answer {
        Answer::Done(_) => {}
        // `bounds.rs` checks that there was a reason.
        Answer::Refused(refusal) if matches!(refusal.reason, Reason::Overloaded | Reason::TooManyLeased) => {}
        Answer::Refused(refusal) => {
            found.push(("CLEAN-DRAIN", format!("call {} of a quiet run: {refusal}", call.start.event)));
        }
        Answer::Lost => {
            found.push(("CLEAN-DRAIN", format!("call {} of a quiet run was not answered", call.start.event)));
        }
    }
}

/// A node that stops answers all accepted calls, with a known outcome.
fn stopped(record: &RunRecord, call: &Call, found: &mut Vec<Finding>) {
    let accepted = |(process, told, done): &&(usize, Moment, Moment)| {
        // Events of one instant have no order.
        *process == call.process && call.start.at < told.at && call.end.event > told.event
            // The caller may have disconnected before.
            && (call.end.event > done.event || !call.what.is_lost())
    };
    let dropped = call.what.is_lost() || unknown(&call.what) || sent_away(&call.what);
    if dropped && record.stops.iter().any(|stop| accepted(&stop)) {
        found.push(("CLEAN-DRAIN", format!("call {} was dropped by a node that stopped", call.start.event)));
    }
}

fn unknown(what: &What) -> bool {
    fn any<T>(answer: &Answer<Vec<Result<T, Refusal>>>, members: usize) -> bool {
        (0..members).any(|at| answer.known(at) == CallerKnowledge::Maybe)
    }
    match what {
        What::Enqueue { items, answer, .. } => any(answer, items.len()),
        What::Dequeue { answer, .. } => {
            matches!(answer, Answer::Refused(refusal) if known_after(refusal) == CallerKnowledge::Maybe)
        }
        What::Ack { receipts, answer } => any(answer, receipts.len()),
        What::Nack { nacks, answer } => any(answer, nacks.len()),
        What::Extend { extensions, answer } => any(answer, extensions.len()),
        What::Change { call, answer } => any(answer, call.items.len()),
        What::ActiveTopics { .. } => false,
    }
}

/// Whether an accepted call was refused later.
fn sent_away(what: &What) -> bool {
    fn any<T>(answer: &Answer<Vec<Result<T, Refusal>>>, members: usize) -> bool {
        let stops = |refusal: &Refusal| {
            matches!(refusal.reason, Reason::NodeDraining | Reason::ShardUnavailable | Reason::NotOwner)
        };
        (0..members).any(|at| matches!(answer.member(at), Some(Err(refusal)) if stops(refusal)))
    }
    match what {
        What::Enqueue { items, answer, .. } => any(answer, items.len()),
        What::Ack { receipts, answer } => any(answer, receipts.len()),
        What::Nack { nacks, answer } => any(answer, nacks.len()),
        What::Extend { extensions, answer } => any(answer, extensions.len()),
        What::Change { call, answer } => any(answer, call.items.len()),
        What::Dequeue { .. } | What::ActiveTopics { .. } => false,
    }
}
