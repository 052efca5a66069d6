//! Calls, pages and forms whose callers have no right to them: a line of the log, and of what would have been
//! written down a record.

use forebay_access::{Identity, Kind};
use forebay_store::{AuditOutcome, AuditRecord};
use forebay_types::Refusal;
use prost_reflect::DynamicMessage;

use super::{
    auditor::{Auditor, END_TIMEOUT, principal_name},
    budget::Purpose,
    ended::shorten,
    methods::{self, asks_for_payloads},
    record::record_bytes,
    request::describe,
    text::clean,
};
use crate::rpc::frame::first_message;

/// A call to which its caller has no right.
pub struct DeniedCall<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its request, as gRPC frames it, if it is there.
    pub request: Option<&'a [u8]>,
    /// The tenant that it names. Empty: none, or it is not there yet.
    pub namespace: &'a str,
    /// Where it comes from.
    pub peer: &'a str,
    /// Its trace. Empty: none.
    pub trace_id: String,
}

impl Auditor {
    /// Notes a call to which its caller has no right. What would be written down if it had is written down. A
    /// record that can't be is left out: the call is refused in any case.
    pub async fn deny_call(&self, call: DeniedCall<'_>, caller: &Identity, refusal: &Refusal) {
        let DeniedCall { path, request, namespace, peer, trace_id } = call;
        let name = path.rsplit('/').next().unwrap_or(path);
        self.say(name, namespace, caller, peer, refusal);
        let Some(method) = self.methods.find(path) else { return };
        let message = request.and_then(first_message);
        let message = message.and_then(|bytes| DynamicMessage::decode(method.input.clone(), bytes).ok());
        let is_written =
            method.kind == methods::Kind::Changes || message.as_ref().is_some_and(asks_for_payloads);
        if !is_written {
            return;
        }
        let Ok(record) = self.record(&method.name, caller, &peer) else { return };
        let described = message.as_ref().map(describe).unwrap_or_default();
        let record = AuditRecord {
            namespace: clean(namespace, 255),
            target: described.target,
            reason: described.reason,
            summary: described.summary,
            trace_id,
            ..record
        };
        self.write_denied(record, caller, refusal).await;
    }

    /// The same of a form that somebody sends.
    pub async fn deny_form(
        &self,
        path: &str,
        namespace: &str,
        caller: &Identity,
        peer: &str,
        refusal: &Refusal,
    ) {
        self.say(path, namespace, caller, peer, refusal);
        let Ok(record) = self.record(&clean(path.trim_start_matches('/'), 64), caller, &peer) else { return };
        self.write_denied(AuditRecord { namespace: clean(namespace, 255), ..record }, caller, refusal).await;
    }

    /// The same of a page that somebody reads, which is in the log alone.
    pub fn deny_page(&self, path: &str, namespace: &str, caller: &Identity, peer: &str, refusal: &Refusal) {
        self.say(path, namespace, caller, peer, refusal);
    }

    async fn write_denied(&self, mut record: AuditRecord, caller: &Identity, refusal: &Refusal) {
        record.outcome = AuditOutcome::Denied;
        record.failure = refusal.reason.as_str().to_owned();
        shorten(&mut record);
        let (bytes, now) = (record_bytes(&record), self.clock.monotonic());
        let taken = self.budget.take(caller, &record.namespace, Purpose::Denied, bytes, now);
        let Ok(place) = taken else { return };
        // The answer waits no longer; the write goes on.
        let _ = tokio::time::timeout(END_TIMEOUT, self.add(&record, place)).await;
    }

    /// One line a second at most of a caller.
    fn say(&self, what: &str, namespace: &str, caller: &Identity, peer: &str, refusal: &Refusal) {
        let Some(left_out) = self.lines.next(caller, self.clock.monotonic()) else { return };
        let who = clean(principal_name(caller), 255);
        let (namespace, token_id) =
            (clean(namespace, 255), if caller.kind == Kind::Token { &*caller.id } else { "" });
        tracing::warn!(
            target: "audit",
            %token_id,
            %peer,
            %namespace,
            method = %clean(what, 64),
            "{who} may not do {}: {}; {left_out} more since the last such line",
            clean(what, 64),
            refusal.reason.as_str(),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_store::{AuditId, AuditQuery, Catalog, SqliteCatalog};
    use forebay_types::{ClusterId, Reason, SystemClock};

    use super::*;
    use crate::access::AuthenticatedCaller;

    #[tokio::test]
    async fn what_somebody_may_not_do_is_written_down_as_denied() {
        let folder = tempfile::tempdir().unwrap();
        let catalog: Arc<dyn Catalog> = Arc::new(SqliteCatalog::new(folder.path().join("catalog.db")));
        catalog.migrate(ClusterId::default()).await.unwrap();
        let auditor = Auditor::new(catalog.clone(), "node1", Arc::new(SystemClock::default())).unwrap();
        let who = AuthenticatedCaller::of_grants(&["a:all"]);
        let refusal = Refusal::new(Reason::WrongNamespace, "no");
        let peer = "192.0.2.7:5";
        for path in ["AdminService/DeleteNamespace", "AdminService/ListTopics", "QueueService/Enqueue"] {
            let path = &format!("/forebay.v1.{path}");
            let call = DeniedCall { path, request: None, namespace: "b", peer, trace_id: String::new() };
            auditor.deny_call(call, &who.identity, &refusal).await;
        }
        auditor.deny_form("/create-token", "b", &who.identity, peer, &refusal).await;
        auditor.deny_page("/nodes", "", &who.identity, peer, &refusal);
        let query =
            AuditQuery { namespace: None, from: AuditId([0; 16]), before: AuditId([0xff; 16]), limit: 10 };
        let found = catalog.audit(&query).await.unwrap().into_iter();
        let mut found: Vec<_> = found.map(|it| (it.method, it.namespace, it.outcome, it.failure)).collect();
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let expected = ["DeleteNamespace", "create-token"].map(|method| {
            (method.to_owned(), "b".to_owned(), AuditOutcome::Denied, "WRONG_NAMESPACE".to_owned())
        });
        assert_eq!(found, expected);
    }
}
