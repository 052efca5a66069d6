//! Writes calls down, before they take effect and after.

use std::{fmt::Display, net::IpAddr, sync::Arc, time::Duration};

use forebay_access::{Identity, Kind as Known, Scope};
use forebay_engine::RETRY_AFTER;
use forebay_store::{AuditId, AuditOutcome, AuditRecord, Catalog, PrincipalKind, StoreError};
use forebay_types::{Clock, Reason, Refusal};
use http::{Response, request::Parts};
use prost_reflect::{DescriptorError, DynamicMessage};

use super::{
    budget::{Budget, Place, Purpose},
    ended::{CallEnd, ended},
    lines::Lines,
    methods::{Kind, Methods, asks_for_payloads, is_dry_run},
    record::{AuditNote, log, record_bytes},
    request::describe,
    text::clean,
};
use crate::{random::random_bytes, rpc::frame::first_message, traces::trace_id_of};

/// How long the catalog may take to write a record.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call that is done waits until its end is written.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Writes calls down.
pub struct Auditor {
    /// Which calls.
    pub(super) methods: Methods,
    /// Where they are kept.
    catalog: Arc<dyn Catalog>,
    /// The name of the node.
    node: String,
    /// When calls are made.
    pub(super) clock: Arc<dyn Clock>,
    /// How much a caller can have written.
    pub(super) budget: Budget,
    /// Lines of the log about calls that were refused.
    pub(super) lines: Lines,
}

/// A call that is about to take effect.
pub struct AuditedCall {
    /// Writes its end.
    auditor: Arc<Auditor>,
    /// The record so far. `None`: its end is written.
    record: Option<AuditRecord>,
    /// Counts it.
    place: Option<Place>,
}

impl Auditor {
    /// Writes calls into this catalog, and into the log.
    pub fn new(
        catalog: Arc<dyn Catalog>,
        node: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, DescriptorError> {
        let (methods, node, budget) = (Methods::new()?, clean(node, 100), Budget::default());
        Ok(Arc::new(Self { methods, catalog, node, clock, budget, lines: Lines::default() }))
    }

    /// Whether a call may be written down. Its request says whether it is.
    pub fn records(&self, path: &str) -> bool {
        self.methods.find(path).is_some()
    }

    /// Whether a call changes something, so that it is written down.
    pub fn changes(&self, path: &str) -> bool {
        self.methods.find(path).is_some_and(|method| method.kind == Kind::Changes)
    }

    /// Writes down that a call is about to take effect. `None`: it is none of those that are written down.
    /// `request`: as gRPC frames it. If it can't be written, the call is refused.
    pub async fn begin(
        self: &Arc<Self>,
        head: &Parts,
        request: &[u8],
        caller: &Identity,
        peer: impl Display + Sync,
    ) -> Result<Option<AuditedCall>, Refusal> {
        let Some(method) = self.methods.find(head.uri.path()) else { return Ok(None) };
        // It is refused by whoever decodes it, if it is not refused here: its first message alone is served.
        let message =
            first_message(request).and_then(|bytes| DynamicMessage::decode(method.input.clone(), bytes).ok());
        let message = message.ok_or_else(|| {
            Refusal::new(Reason::InvalidField, "cannot decode the request: it is no message of this call")
        })?;
        if is_dry_run(&message) {
            return Ok(None);
        }
        let described = describe(&message);
        let shows = method.kind == Kind::Shows;
        if shows && !(asks_for_payloads(&message) && caller.may(Scope::Inspect, &described.namespace)) {
            return Ok(None);
        }
        // A call that shows something has shown it, whatever comes then.
        let outcome = if shows { AuditOutcome::Done } else { AuditOutcome::Intended };
        let record = AuditRecord {
            namespace: described.namespace,
            target: described.target,
            reason: described.reason,
            summary: described.summary,
            outcome,
            trace_id: trace_id_of(&head.headers).unwrap_or_default(),
            ..self.record(&method.name, caller, &peer)?
        };
        let mut call = self.write(record, caller).await?;
        if shows {
            call.record.take().iter().for_each(log);
        }
        Ok(Some(call))
    }

    /// Writes down that somebody is about to do what is no call, as a login. `act`: what. If it can't be
    /// written, it is not to be done.
    pub async fn begin_act(
        self: &Arc<Self>,
        act: &str,
        caller: &Identity,
        peer: IpAddr,
    ) -> Result<AuditedCall, Refusal> {
        self.write(self.record(act, caller, &peer)?, caller).await
    }

    /// A record of what is about to be done now, about nothing yet.
    pub(super) fn record(
        &self,
        method: &str,
        caller: &Identity,
        peer: &dyn Display,
    ) -> Result<AuditRecord, Refusal> {
        let random = random_bytes().map_err(|error| unavailable(&error.to_string()))?;
        Ok(AuditRecord {
            id: AuditId::new(self.clock.wall(), random),
            principal: clean(principal_name(caller), 255),
            kind: match caller.kind {
                Known::Anyone => PrincipalKind::Anyone,
                Known::Token => PrincipalKind::Token,
                Known::Certificate => PrincipalKind::Certificate,
            },
            token_id: if caller.kind == Known::Token { clean(&caller.id, 12) } else { String::new() },
            peer: peer.to_string(),
            method: method.to_owned(),
            namespace: String::new(),
            target: String::new(),
            reason: String::new(),
            summary: String::new(),
            outcome: AuditOutcome::Intended,
            failure: String::new(),
            operation_id: String::new(),
            node: self.node.clone(),
            trace_id: String::new(),
        })
    }

    /// Adds a record, if the caller can have it written.
    async fn write(self: &Arc<Self>, record: AuditRecord, caller: &Identity) -> Result<AuditedCall, Refusal> {
        let (bytes, now) = (record_bytes(&record), self.clock.monotonic());
        let place = self.budget.take(caller, &record.namespace, Purpose::Made, bytes, now)?;
        let place = self.add(&record, place).await?;
        Ok(AuditedCall { auditor: self.clone(), record: Some(record), place: Some(place) })
    }

    /// Adds a record. The write goes on if the caller goes away, and keeps its place until then.
    pub(super) async fn add(&self, record: &AuditRecord, place: Place) -> Result<Place, Refusal> {
        let catalog = self.catalog.clone();
        let record = record.clone();
        let write = tokio::spawn(async move {
            let written = tokio::time::timeout(CATALOG_TIMEOUT, catalog.add_audit(&record)).await;
            (written, place)
        });
        match write.await {
            Ok((Ok(Ok(())), place)) => Ok(place),
            Ok((Ok(Err(error)), _)) => Err(failed(&error)),
            Ok((Err(_), _)) => {
                count_failure(&format!("no answer within {CATALOG_TIMEOUT:?}"));
                Err(unavailable("the catalog does not answer"))
            }
            Err(_) => Err(unavailable("the node is stopping")),
        }
    }
}

impl AuditedCall {
    /// Writes down how the call ended. If that can't be written, what is kept says that nothing is known of
    /// its end; the log has it. Waits so long at most.
    pub fn end<B>(
        self,
        response: &Response<B>,
        patience: Duration,
    ) -> impl Future<Output = ()> + Send + use<B> {
        let note = response.extensions().get::<AuditNote>().cloned().unwrap_or_default();
        self.end_with(CallEnd::of(response), &note, patience)
    }

    /// The same of what is no call. `failure`: why it was not done, if it was not.
    pub async fn end_act(self, failure: Option<Reason>) {
        let failure = failure.map(|reason| reason.as_str().to_owned());
        self.end_with(CallEnd { failure, has_no_effect: false }, &AuditNote::default(), END_TIMEOUT).await;
    }

    fn end_with(
        mut self,
        how: CallEnd,
        note: &AuditNote,
        patience: Duration,
    ) -> impl Future<Output = ()> + Send + use<> {
        let ended = self.record.take().map(|record| {
            let written = record_bytes(&record);
            let (id, end, kept) = ended(record, how, note);
            if let Some(place) = &self.place {
                place.give_back(written.saturating_sub(kept), self.auditor.clock.monotonic());
            }
            (id, end)
        });
        let (catalog, place) = (self.auditor.catalog.clone(), self.place.take());
        async move {
            let Some((id, end)) = ended else { return };
            let write = tokio::spawn(async move {
                match tokio::time::timeout(CATALOG_TIMEOUT, catalog.end_audit(id, &end)).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => count_failure(&error.to_string()),
                    Err(_) => count_failure(&format!("no answer within {CATALOG_TIMEOUT:?}")),
                }
                drop(place);
            });
            // It goes on without us.
            let _ = tokio::time::timeout(END_TIMEOUT.min(patience), write).await;
        }
    }
}

impl Drop for AuditedCall {
    fn drop(&mut self) {
        // The caller has gone away, or the deadline has passed.
        self.record.take().iter().for_each(log);
    }
}

/// The name by which a caller is written down.
pub fn principal_name(caller: &Identity) -> &str {
    if caller.name.is_empty() { &caller.id } else { &caller.name }
}

fn count_failure(error: &str) {
    metrics::counter!("forebay_audit_failures_total").increment(1);
    tracing::error!(error, "a call can't be written down in the catalog's audit log");
}

/// The catalog failed. What it said is for operators.
fn failed(error: &StoreError) -> Refusal {
    count_failure(&error.to_string());
    unavailable("the catalog does not answer, or its schema is older than this program")
}

fn unavailable(why: &str) -> Refusal {
    let message = format!("the call can't be written down in the audit log, so it is not made: {why}");
    Refusal::new(Reason::CatalogUnavailable, message).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use forebay_store::{AuditQuery, SqliteCatalog};
    use forebay_types::{ClusterId, SystemClock};

    use super::*;
    use crate::access::AuthenticatedCaller;

    #[tokio::test]
    async fn what_is_no_call_is_written_down_before_and_after() {
        let folder = tempfile::tempdir().unwrap();
        let catalog: Arc<dyn Catalog> = Arc::new(SqliteCatalog::new(folder.path().join("catalog.db")));
        catalog.migrate(ClusterId::default()).await.unwrap();
        let auditor = Auditor::new(catalog.clone(), "node1", Arc::new(SystemClock::default())).unwrap();
        let who = AuthenticatedCaller::of_grants(&["*:all"]);
        let read = async || {
            let query = AuditQuery {
                namespace: None,
                from: AuditId([0; 16]),
                before: AuditId([0xff; 16]),
                limit: 10,
            };
            let records = catalog.audit(&query).await.unwrap();
            let told = |it: AuditRecord| (it.method, it.principal, it.peer, it.outcome, it.failure);
            records.into_iter().map(told).collect::<Vec<_>>()
        };
        let record = |outcome, failure: &str| {
            ("Login".to_owned(), "a".to_owned(), "192.0.2.7".to_owned(), outcome, failure.to_owned())
        };
        for (failure, outcome, text) in [
            (None, AuditOutcome::Done, ""),
            (Some(Reason::CatalogUnavailable), AuditOutcome::Failed, "CATALOG_UNAVAILABLE"),
        ] {
            let call = auditor
                .begin_act("Login", &who.identity, "192.0.2.7".parse().unwrap())
                .await
                .unwrap_or_else(|refusal| panic!("{refusal:?}"));
            assert_eq!(read().await[0], record(AuditOutcome::Intended, ""));
            call.end_act(failure).await;
            assert_eq!(read().await[0], record(outcome, text));
        }
    }
}
