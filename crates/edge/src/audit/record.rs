//! Parts of a record beside its columns: its size, its line in the log, and what a handler adds to it.

use forebay_store::{AuditOutcome, AuditRecord};

/// Bytes of a record beside its texts.
const RECORD_BYTES: usize = 192;

/// Facts of a call that its handler knows only at its end. They are among the extensions of the response.
#[derive(Debug, Clone, Default)]
pub struct AuditNote {
    /// The subject of the call. Empty: the one that the request names.
    pub target: String,
    /// The operation that it began. Empty: none.
    pub operation_id: String,
}

/// Bytes that a record takes in the catalog.
pub fn record_bytes(record: &AuditRecord) -> usize {
    let AuditRecord { principal, namespace, target, reason, summary, method, peer, node, .. } = record;
    let texts = [principal, namespace, target, reason, summary, method, peer, node];
    RECORD_BYTES + texts.into_iter().map(String::len).sum::<usize>()
}

/// One line a call.
pub fn log(record: &AuditRecord) {
    let AuditRecord {
        principal, token_id, peer, method, namespace, target, reason, summary, trace_id, ..
    } = record;
    let outcome = match record.outcome {
        AuditOutcome::Intended | AuditOutcome::Unknown(_) => "its end is not known",
        AuditOutcome::Done => "done",
        AuditOutcome::Failed | AuditOutcome::Denied => record.failure.as_str(),
    };
    let who = if principal.is_empty() { "somebody" } else { principal };
    tracing::info!(
        target: "audit",
        %token_id,
        %peer,
        %reason,
        %summary,
        operation = %record.operation_id,
        %trace_id,
        "{who} {method} {namespace}/{target}: {outcome}"
    );
}
