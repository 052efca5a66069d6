//! ListAuditRecords.

use std::{sync::Arc, time::Duration};

use forebay_access::{Identity, Namespaces, Scope};
use forebay_edge::rpc::{
    fields,
    page_token::{List, not_of_this_list},
    rules::ALL_NAMESPACES,
};
use forebay_engine::RETRY_AFTER;
use forebay_proto::{time::to_timestamp, v1};
use forebay_store::{AuditId, AuditOutcome, AuditQuery, AuditRecord, Catalog, PrincipalKind};
use forebay_types::{Namespace, Reason, Refusal};
use prost::Message as _;

use super::{
    context::{Admin, page_rows},
    ctx::Ctx,
};

/// How long the catalog may take to answer.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);
/// Records that are read at a time.
const CHUNK: usize = 500;
/// Bytes that they may take.
const CHUNK_BYTES: usize = CHUNK * (4 << 10);
/// Records that are looked at for one page.
const SCAN_MAX: u64 = 10_000;
/// Encoded bytes of a page.
const PAGE_BYTES: usize = 3 << 20;
/// The longest text to filter by.
const FILTER_BYTES: usize = 255;

/// Records that are asked for.
struct Wish {
    /// Of this principal, or of the token with this id. Empty: of all.
    principal: String,
    /// Of this call. Empty: of all.
    method: String,
    /// That ended so.
    outcome: Option<AuditOutcome>,
    /// Also of what others tried who have no right in the namespace. Who they are and from where they come is
    /// for operators: it would tell one tenant of another.
    of_strangers: bool,
}

impl Wish {
    fn of(request: &v1::ListAuditRecordsRequest, caller: &Identity) -> Result<Self, Refusal> {
        fields::bytes("principal", request.principal.len(), FILTER_BYTES)?;
        fields::bytes("method", request.method.len(), FILTER_BYTES)?;
        let outcome = match v1::AuditOutcome::try_from(request.outcome) {
            Ok(v1::AuditOutcome::Unspecified) => None,
            Ok(v1::AuditOutcome::Intended) => Some(AuditOutcome::Intended),
            Ok(v1::AuditOutcome::Done) => Some(AuditOutcome::Done),
            Ok(v1::AuditOutcome::Failed) => Some(AuditOutcome::Failed),
            Ok(v1::AuditOutcome::Denied) => Some(AuditOutcome::Denied),
            Err(_) => {
                let message = "must be AUDIT_OUTCOME_INTENDED, AUDIT_OUTCOME_DONE, AUDIT_OUTCOME_FAILED or \
                               AUDIT_OUTCOME_DENIED";
                return Err(Refusal::field("outcome", message));
            }
        };
        let (principal, method) = (request.principal.clone(), request.method.clone());
        Ok(Self { principal, method, outcome, of_strangers: caller.may_everywhere(Scope::Admin) })
    }

    fn has(&self, record: &AuditRecord) -> bool {
        let Self { principal, method, outcome, of_strangers } = self;
        let is_strangers =
            record.outcome == AuditOutcome::Denied && record.failure == Reason::WrongNamespace.as_str();
        (*of_strangers || !is_strangers)
            && (principal.is_empty() || record.principal == *principal || record.token_id == *principal)
            && (method.is_empty() || record.method == *method)
            && outcome.is_none_or(|outcome| record.outcome == outcome)
    }

    fn has_all(&self) -> bool {
        self.of_strangers && self.principal.is_empty() && self.method.is_empty() && self.outcome.is_none()
    }
}

/// Serves the call.
pub async fn list(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ListAuditRecordsRequest,
) -> Result<v1::ListAuditRecordsResponse, Refusal> {
    let namespace = namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let wish = Wish::of(&request, &ctx.caller)?;
    let time = |field, time: &Option<prost_types::Timestamp>| {
        let time = time.as_ref().map(|time| fields::timestamp(field, time)).transpose()?;
        Ok::<_, Refusal>(time.map(AuditId::first_of))
    };
    let (from, until) = (time("from", &request.from)?, time("until", &request.until)?);
    let wished = [from, until].map(|id| id.map(|id| id.to_string()).unwrap_or_default());
    let query = format!("{wished:?} {:?} {:?} {}", wish.principal, wish.method, request.outcome);
    let list = List {
        tokens: &admin.tokens,
        name: "ListAuditRecords",
        namespace: &request.namespace,
        query: &query,
    };
    let behind = list.position(&request.page_token)?.map(position_of).transpose()?;
    let catalog = admin.policies.catalog.clone();
    let _bytes = admin.records.take(&namespace, CHUNK_BYTES + PAGE_BYTES).map_err(|_| {
        Refusal::new(Reason::Overloaded, "too many lists of records are read at the moment; retry later")
            .retry_after(RETRY_AFTER)
    })?;
    let rows = page_rows(request.page_size);
    let query = AuditQuery {
        namespace: (&*request.namespace != ALL_NAMESPACES).then(|| request.namespace.clone()),
        from: from.unwrap_or(AuditId([0; 16])),
        before: behind.or(until).unwrap_or(AuditId([0xff; 16])),
        limit: 0,
    };
    let Page { records, scanned, next } = read(&catalog, query, &wish, rows).await?;
    ctx.call.reserve_answer(records.iter().map(v1::AuditRecord::encoded_len).sum())?;
    let next_page_token = next.map(|id| list.token(&id.0)).unwrap_or_default();
    Ok(v1::ListAuditRecordsResponse { records, next_page_token, scanned })
}

/// A page.
struct Page {
    /// Its records.
    records: Vec<v1::AuditRecord>,
    /// How many were looked at.
    scanned: u64,
    /// The last one that was looked at. `None`: there are no more.
    next: Option<AuditId>,
}

/// Reads a page, a chunk at a time.
async fn read(
    catalog: &Arc<dyn Catalog>,
    mut query: AuditQuery,
    wish: &Wish,
    rows: usize,
) -> Result<Page, Refusal> {
    let (mut records, mut bytes, mut scanned) = (Vec::new(), 0, 0);
    loop {
        let limit = if wish.has_all() { CHUNK.min(rows - records.len()) } else { CHUNK };
        query.limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let chunk = within(catalog.audit(&query)).await?;
        let is_last = chunk.len() < limit;
        for record in chunk {
            scanned += 1;
            query.before = record.id;
            if wish.has(&record) {
                let message = message(record);
                bytes += message.encoded_len();
                records.push(message);
            }
            if records.len() == rows || bytes >= PAGE_BYTES {
                return Ok(Page { records, scanned, next: Some(query.before) });
            }
        }
        if is_last || scanned >= SCAN_MAX {
            return Ok(Page { records, scanned, next: (!is_last).then_some(query.before) });
        }
    }
}

/// Answer of the catalog, if it comes in time.
pub async fn within<T>(
    answer: impl Future<Output = Result<T, forebay_store::StoreError>>,
) -> Result<T, Refusal> {
    let unavailable = |why: &str| {
        Refusal::new(Reason::CatalogUnavailable, format!("the catalog: {why}")).retry_after(RETRY_AFTER)
    };
    match tokio::time::timeout(CATALOG_TIMEOUT, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            // Text of the error is for operators.
            tracing::warn!(%error, "the catalog can't be read");
            Err(unavailable("it does not answer, or its schema is older than this program"))
        }
        Err(_) => Err(unavailable(&format!("no answer within {CATALOG_TIMEOUT:?}"))),
    }
}

/// The namespaces that a call names: one, the beginning of names and a `*`, or `-` for all.
pub fn namespace(text: &str) -> Result<Namespace, Refusal> {
    let wrong = |why: &str| Refusal::field("namespace", format!("must be a namespace: {why}"));
    match text {
        ALL_NAMESPACES => {}
        "*" => return Err(wrong("write - for all of them")),
        text => drop(Namespaces::read(text).map_err(wrong)?),
    }
    Ok(text.into())
}

fn position_of(bytes: Vec<u8>) -> Result<AuditId, Refusal> {
    Ok(AuditId(bytes.try_into().map_err(|_| not_of_this_list())?))
}

fn message(record: AuditRecord) -> v1::AuditRecord {
    let kind = match record.kind {
        PrincipalKind::Anyone => v1::PrincipalKind::Anyone,
        PrincipalKind::Token => v1::PrincipalKind::Token,
        PrincipalKind::Certificate => v1::PrincipalKind::Certificate,
        PrincipalKind::Operator => v1::PrincipalKind::Operator,
        PrincipalKind::Unknown(_) => v1::PrincipalKind::Unspecified,
    };
    let outcome = match record.outcome {
        AuditOutcome::Intended => v1::AuditOutcome::Intended,
        AuditOutcome::Done => v1::AuditOutcome::Done,
        AuditOutcome::Failed => v1::AuditOutcome::Failed,
        AuditOutcome::Denied => v1::AuditOutcome::Denied,
        AuditOutcome::Unknown(_) => v1::AuditOutcome::Unspecified,
    };
    v1::AuditRecord {
        id: record.id.to_string(),
        at: Some(to_timestamp(record.id.at())),
        principal: record.principal,
        principal_kind: kind.into(),
        token_id: record.token_id,
        peer: record.peer,
        method: record.method,
        namespace: record.namespace,
        target: record.target,
        reason: record.reason,
        request_summary: record.summary,
        outcome: outcome.into(),
        failure: record.failure,
        operation_id: record.operation_id,
        node: record.node,
        trace_id: record.trace_id,
    }
}
