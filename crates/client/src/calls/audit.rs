//! ListAuditRecords: who has changed what.

use forebay_proto::v1;
use forebay_types::Timestamp;

use crate::{
    client::Client,
    durations::{time_from_proto, time_to_proto},
    error::Error,
};

/// What became of a call that was written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It was about to be made. Nothing is known of its end.
    Intended,
    /// It was done.
    Done,
    /// It failed.
    Failed,
    /// Its caller had no right to it, so it was not made.
    Denied,
}

/// A call that changed something or showed payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Names the record.
    pub id: String,
    /// When the call was made.
    pub at: Option<Timestamp>,
    /// The name of the caller. Empty: nobody is known.
    pub principal: String,
    /// `anyone`, where there is no access control, `token`, `certificate`, or `operator` at the catalog.
    pub principal_kind: &'static str,
    /// The id of the caller's token. Empty: it has none.
    pub token_id: String,
    /// From where it came.
    pub peer: String,
    /// The call, as in `PauseTopic`.
    pub method: String,
    /// The namespace that it names. Empty: none.
    pub namespace: String,
    /// The topic, item, operation, token, node or shard that it is about.
    pub target: String,
    /// Why, in the words of the caller.
    pub reason: String,
    /// The other fields of the request.
    pub request_summary: String,
    /// What became of it. `None`: this version does not know that.
    pub outcome: Option<AuditOutcome>,
    /// The reason of the error, if it failed.
    pub failure: String,
    /// The operation that it began. Empty: none.
    pub operation_id: String,
    /// The node that took it.
    pub node: String,
    /// The trace of which it is part, 32 hexadecimal digits. Empty: none.
    pub trace_id: String,
}

/// Which records of the client's namespace are asked for. The namespace `-` stands for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Calls from this time on.
    pub from: Option<Timestamp>,
    /// Calls before this time.
    pub until: Option<Timestamp>,
    /// Calls of this principal, or of the token with this id. Empty: of all.
    pub principal: String,
    /// These calls. Empty: all.
    pub method: String,
    /// Those that ended so.
    pub outcome: Option<AuditOutcome>,
    /// Records of the page. 0: 100. At most 1,000.
    pub page_size: u32,
    /// The next page of the page before. Empty: the first one.
    pub page_token: String,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The latest first.
    pub records: Vec<AuditRecord>,
    /// The token of the next page. `None`: this is the last one.
    pub next: Option<String>,
}

impl Client {
    /// Lists calls that changed something or showed payloads, the latest first.
    pub async fn audit_records(&self, query: AuditQuery) -> Result<AuditPage, Error> {
        let outcome = match query.outcome {
            None => v1::AuditOutcome::Unspecified,
            Some(AuditOutcome::Intended) => v1::AuditOutcome::Intended,
            Some(AuditOutcome::Done) => v1::AuditOutcome::Done,
            Some(AuditOutcome::Failed) => v1::AuditOutcome::Failed,
            Some(AuditOutcome::Denied) => v1::AuditOutcome::Denied,
        };
        let request = v1::ListAuditRecordsRequest {
            namespace: self.config.namespace.clone(),
            from: query.from.map(time_to_proto),
            until: query.until.map(time_to_proto),
            principal: query.principal,
            method: query.method,
            outcome: outcome.into(),
            page_size: query.page_size,
            page_token: query.page_token,
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.list_audit_records(request).await }
            })
            .await?;
        let next = Some(answer.next_page_token).filter(|token| !token.is_empty());
        Ok(AuditPage { records: answer.records.into_iter().map(record).collect(), next })
    }
}

fn record(it: v1::AuditRecord) -> AuditRecord {
    let principal_kind = kind_name(it.principal_kind());
    let outcome = match it.outcome() {
        v1::AuditOutcome::Intended => Some(AuditOutcome::Intended),
        v1::AuditOutcome::Done => Some(AuditOutcome::Done),
        v1::AuditOutcome::Failed => Some(AuditOutcome::Failed),
        v1::AuditOutcome::Denied => Some(AuditOutcome::Denied),
        v1::AuditOutcome::Unspecified => None,
    };
    AuditRecord {
        id: it.id,
        at: it.at.map(time_from_proto),
        principal: it.principal,
        principal_kind,
        token_id: it.token_id,
        peer: it.peer,
        method: it.method,
        namespace: it.namespace,
        target: it.target,
        reason: it.reason,
        request_summary: it.request_summary,
        outcome,
        failure: it.failure,
        operation_id: it.operation_id,
        node: it.node,
        trace_id: it.trace_id,
    }
}

/// How it is known who made a call.
pub(super) fn kind_name(kind: v1::PrincipalKind) -> &'static str {
    match kind {
        v1::PrincipalKind::Anyone => "anyone",
        v1::PrincipalKind::Token => "token",
        v1::PrincipalKind::Certificate => "certificate",
        v1::PrincipalKind::Operator => "operator",
        v1::PrincipalKind::Unspecified => "unknown",
    }
}
