//! Operations, as the messages that they came in.

use forebay_client::{
    Operation, OperationCounts, OperationKind, OperationShard, OperationState, StartedOperation,
};
use forebay_proto::v1;

use super::messages::{reason, status, time};

/// The name of a kind.
pub fn kind_name(kind: Option<OperationKind>) -> &'static str {
    match kind {
        Some(OperationKind::Purge) => "purge",
        Some(OperationKind::Redrive) => "redrive",
        Some(OperationKind::DeleteDead) => "delete-dead",
        Some(OperationKind::ResetLeases) => "reset-leases",
        Some(OperationKind::Cancel) => "cancel",
        Some(OperationKind::Update) => "update",
        None => "unknown",
    }
}

/// The name of a state.
pub fn state_name(state: OperationState) -> &'static str {
    match state {
        OperationState::Pending => "pending",
        OperationState::Running => "running",
        OperationState::Cancelling => "cancelling",
        OperationState::Succeeded => "succeeded",
        OperationState::Cancelled => "cancelled",
        OperationState::Failed => "failed",
        OperationState::Unknown => "unknown",
    }
}

fn figures(counts: &OperationCounts) -> v1::OperationFigures {
    let OperationCounts { scanned, matched, changed, skipped, failed } = *counts;
    v1::OperationFigures { scanned, matched, changed, skipped, failed }
}

/// An operation.
pub fn operation(it: &Operation) -> v1::Operation {
    let kind = kind_name(it.kind).to_uppercase().replace('-', "_");
    let kind = v1::OperationKind::from_str_name(&format!("OPERATION_KIND_{kind}"));
    let state = state_name(it.state).to_uppercase();
    let state = v1::OperationState::from_str_name(&format!("OPERATION_STATE_{state}"));
    let shard = |it: &OperationShard| v1::OperationShard {
        shard: it.shard,
        figures: Some(figures(&it.counts)),
        ended: it.ended,
        begun: it.begun,
        silent: it.silent,
        error: it.error.as_ref().map(status),
        error_reason: it.error.as_ref().map(reason).unwrap_or_default(),
    };
    v1::Operation {
        id: it.id.clone(),
        namespace: it.namespace.clone(),
        kind: kind.unwrap_or_default().into(),
        topic: it.topic.clone(),
        filter: it.filter.clone(),
        leased: it.leased,
        to_topic: it.to_topic.clone(),
        ttl: it.ttl.and_then(|ttl| ttl.try_into().ok()),
        update: it.update.clone().map(v1::OperationUpdate::from),
        rate_per_second: it.rate,
        started_by: it.started_by.clone(),
        reason: it.reason.clone(),
        started_at: it.started_at.map(time),
        ended_at: it.ended_at.map(time),
        state: state.unwrap_or_default().into(),
        figures: Some(figures(&it.counts)),
        shards: it.shards.iter().map(shard).collect(),
        version: it.version,
        max_redrives: it.max_redrives,
        error: it.error.as_ref().map(status),
        error_reason: it.error.as_ref().map(reason).unwrap_or_default(),
        estimated_total: it.estimated_total,
        estimated_end: it.estimated_end.map(time),
    }
}

/// An operation that was begun, or a dry run.
pub fn started(it: &StartedOperation) -> v1::StartOperationResponse {
    v1::StartOperationResponse {
        operation: Some(operation(&it.operation)),
        exact: it.exact,
        sample_item_ids: it.samples.clone(),
        incomplete_shards: it.incomplete_shards.clone(),
    }
}
