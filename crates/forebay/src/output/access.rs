//! Audit records and tokens, as the messages that they came in.

use forebay_client::{AuditOutcome, AuditRecord, TokenInfo};
use forebay_proto::v1;

use super::messages::time;

/// What became of a call.
pub fn audit_outcome(outcome: Option<AuditOutcome>) -> &'static str {
    match outcome {
        Some(AuditOutcome::Intended) => "intended",
        Some(AuditOutcome::Done) => "done",
        Some(AuditOutcome::Failed) => "failed",
        Some(AuditOutcome::Denied) => "denied",
        None => "unknown",
    }
}

/// A record of a call.
pub fn audit_record(it: &AuditRecord) -> v1::AuditRecord {
    let kind = format!("PRINCIPAL_KIND_{}", it.principal_kind.to_uppercase());
    let outcome = format!("AUDIT_OUTCOME_{}", audit_outcome(it.outcome).to_uppercase());
    v1::AuditRecord {
        id: it.id.clone(),
        at: it.at.map(time),
        principal: it.principal.clone(),
        principal_kind: v1::PrincipalKind::from_str_name(&kind).unwrap_or_default().into(),
        token_id: it.token_id.clone(),
        peer: it.peer.clone(),
        method: it.method.clone(),
        namespace: it.namespace.clone(),
        target: it.target.clone(),
        reason: it.reason.clone(),
        request_summary: it.request_summary.clone(),
        outcome: v1::AuditOutcome::from_str_name(&outcome).unwrap_or_default().into(),
        failure: it.failure.clone(),
        operation_id: it.operation_id.clone(),
        node: it.node.clone(),
        trace_id: it.trace_id.clone(),
    }
}

/// A token, without its secret.
pub fn token(it: &TokenInfo) -> v1::Token {
    let grants = it.grants.iter();
    let grants = grants.map(|it| v1::Grant { namespaces: it.namespaces.clone(), scopes: it.scopes.clone() });
    v1::Token {
        id: it.id.clone(),
        namespace: it.namespace.clone(),
        name: it.name.clone(),
        grants: grants.collect(),
        made_by: it.made_by.clone(),
        made_by_id: it.made_by_id.clone(),
        made_at: it.made_at.map(time),
        ends_at: it.ends_at.map(time),
        overlap_ends_at: it.overlap_ends_at.map(time),
        revoked_at: it.revoked_at.map(time),
        last_used_at: it.last_used_at.map(time),
    }
}
