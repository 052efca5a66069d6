//! GetOperation, ListOperations, CancelOperation and SetOperationRate.

use std::{collections::BTreeSet, time::Duration};

use forebay_edge::rpc::{fields, page_token::List};
use forebay_engine::RETRY_AFTER;
use forebay_proto::v1::{self, OperationState};
use forebay_store::{OperationChange, OperationId, OperationOrder};
use forebay_types::{Namespace, Reason, Refusal, ShardId};
use prost::Message as _;

use super::{
    context::{Admin, page_rows},
    ctx::Ctx,
};
use crate::gather::{LookExtent, OperationView};

/// The longest wait for another version.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// An answer is sent so long before the call's deadline.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// Bytes that an answer may take.
pub(crate) const OPERATION_BYTES: usize = 64 << 10;
/// Bytes that a list may take.
const LIST_BYTES: usize = 2 << 20;
/// The highest rate.
pub(crate) const RATE_MAX: u32 = 1_000_000;

/// Serves GetOperation.
pub async fn get(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::GetOperationRequest,
) -> Result<v1::GetOperationResponse, Refusal> {
    let (namespace, id) = named(admin, ctx, &request.namespace, &request.operation_id)?;
    let wait = match &request.wait {
        Some(wait) => fields::duration("wait", wait)?.min(WAIT_MAX),
        None => Duration::ZERO,
    };
    let wait = if wait.is_zero() || ctx.call.park() { wait } else { Duration::ZERO };
    let until = tokio::time::Instant::now() + wait.min(ctx.call.left().saturating_sub(ANSWER_TIME));
    loop {
        let (view, all, shards) = look(admin, &namespace, id).await?;
        let asked = LookExtent { all: &all, looked_at: &shards, now: admin.clock.wall() };
        let operation = view.message(asked, true);
        if operation.version != request.version || tokio::time::Instant::now() >= until {
            ctx.call.reserve_answer(operation.encoded_len())?;
            let incomplete_shards = view.spec.shards.iter().map(|id| id.0).filter(|id| !shards.contains(id));
            return Ok(v1::GetOperationResponse {
                incomplete_shards: incomplete_shards.collect(),
                operation: Some(operation),
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Serves ListOperations.
pub async fn list(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ListOperationsRequest,
) -> Result<v1::ListOperationsResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let _look = admin.gather.admit(&namespace, LIST_BYTES)?;
    let list =
        List { tokens: &admin.tokens, name: "ListOperations", namespace: &request.namespace, query: "" };
    let behind = list.position(&request.page_token)?;
    let (mut views, shards) = admin.gather.operations(&namespace, None).await?;
    let (_, all) = admin.gather.all_shards().await?;
    views.sort_by_cached_key(position);
    if let Some(behind) = behind {
        views.retain(|view| position(view) > behind);
    }
    let limit = page_rows(request.page_size);
    let next = views.get(limit).and_then(|_| views.get(limit - 1)).map(position);
    views.truncate(limit);
    let asked = LookExtent { all: &all, looked_at: &shards, now: admin.clock.wall() };
    let operations: Vec<v1::Operation> = views.iter().map(|view| view.message(asked, false)).collect();
    ctx.call.reserve_answer(operations.iter().map(v1::Operation::encoded_len).sum())?;
    Ok(v1::ListOperationsResponse {
        operations,
        next_page_token: next.map(|position| list.token(&position)).unwrap_or_default(),
        incomplete_shards: admin.gather.incomplete(&shards),
    })
}

/// The latest come first.
fn position(view: &OperationView) -> Vec<u8> {
    let started = u64::MAX - view.spec.started_at.as_micros().cast_unsigned();
    [&started.to_be_bytes()[..], &view.spec.id.0].concat()
}

/// Serves CancelOperation.
pub async fn cancel(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::CancelOperationRequest,
) -> Result<v1::CancelOperationResponse, Refusal> {
    let (namespace, id) = named(admin, ctx, &request.namespace, &request.operation_id)?;
    let operation = change(admin, ctx, &namespace, id, OperationChange::Cancel).await?;
    Ok(v1::CancelOperationResponse { operation: Some(operation) })
}

/// Serves SetOperationRate.
pub async fn set_rate(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::SetOperationRateRequest,
) -> Result<v1::SetOperationRateResponse, Refusal> {
    let (namespace, id) = named(admin, ctx, &request.namespace, &request.operation_id)?;
    let rate = request.rate_per_second;
    fields::within("rate_per_second", rate as usize, 1, RATE_MAX as usize)?;
    let operation = change(admin, ctx, &namespace, id, OperationChange::Rate(rate)).await?;
    Ok(v1::SetOperationRateResponse { operation: Some(operation) })
}

/// The operation that a call names.
fn named(admin: &Admin, ctx: &Ctx, namespace: &str, id: &str) -> Result<(Namespace, OperationId), Refusal> {
    let namespace = admin.rules.namespace(namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let id = id.parse().map_err(|error| Refusal::field("operation_id", format!("{error}")))?;
    Ok((namespace, id))
}

/// An operation, all shards, and those that were asked.
pub async fn look(
    admin: &Admin,
    namespace: &Namespace,
    id: OperationId,
) -> Result<(OperationView, Vec<ShardId>, BTreeSet<u32>), Refusal> {
    let _look = admin.gather.admit(namespace, OPERATION_BYTES)?;
    let (views, shards) = admin.gather.operations(namespace, Some(id)).await?;
    let (_, all) = admin.gather.all_shards().await?;
    let Some(view) = views.into_iter().next() else {
        let missing = admin.gather.incomplete(&shards);
        return Err(match missing.is_empty() {
            true => Refusal::new(Reason::OperationNotFound, format!("there is no operation {id}")),
            false => {
                let message = format!("shards {missing:?} could not be asked for operation {id}");
                Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER)
            }
        });
    };
    Ok((view, all, shards))
}

/// Changes an operation in its home shard, and tells the others.
async fn change(
    admin: &Admin,
    ctx: &Ctx,
    namespace: &Namespace,
    id: OperationId,
    change: OperationChange,
) -> Result<v1::Operation, Refusal> {
    let (mut view, mut all, mut looked_at) = look(admin, namespace, id).await?;
    match (view.state(&all), change) {
        // Whoever has lost the answer repeats the call.
        (OperationState::Cancelled, OperationChange::Cancel) => {}
        (OperationState::Cancelled, _) => return Err(has_ended(id, "it was cancelled")),
        (OperationState::Succeeded, _) => return Err(has_ended(id, "it has done its work")),
        (OperationState::Failed, _) => return Err(has_ended(id, "it has failed")),
        _ => {
            let home = view.spec.home;
            let order = OperationOrder::Change { id, namespace: namespace.to_string(), change };
            let answers = admin.gather.order(&order, Some(home)).await;
            let Some((_, changed)) = answers.into_iter().next() else {
                let message =
                    format!("shard {home} did not answer: the change may or may not have taken effect");
                return Err(Refusal::new(Reason::OutcomeUnknown, message).retry_after(RETRY_AFTER));
            };
            let spec = changed?.spec;
            // Nodes that do not answer are told again by the owner of the home shard.
            admin.gather.order(&OperationOrder::Follow(Box::new(spec)), None).await;
            (view, all, looked_at) = look(admin, namespace, id).await?;
        }
    }
    let asked = LookExtent { all: &all, looked_at: &looked_at, now: admin.clock.wall() };
    let operation = view.message(asked, true);
    ctx.call.reserve_answer(operation.encoded_len())?;
    Ok(operation)
}

/// An operation that can't be changed any more.
fn has_ended(id: OperationId, how: &str) -> Refusal {
    Refusal::new(Reason::OperationEnded, format!("operation {id} has ended: {how}"))
}
