//! Calls for operators that name themselves (`request_id`) are made once: who repeats one is answered as the
//! first time.
//!
//! The admission layer does it, between the audit record and the handler, so that no handler can forget it.
//! The calls that answer with operations as they are by then know their ids themselves.

use std::{sync::Arc, time::Duration};

use forebay_access::{Identity, Kind};
use forebay_engine::{Charge, RETRY_AFTER, TenantBudget};
use forebay_store::{Catalog, NewRequest, RequestEnd, RequestFound};
use forebay_types::{Clock, Namespace, Reason, Refusal, Timestamp};
use http::Response;
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;
use tonic::body::Body;

use crate::grpc::frame::{answer_of, first_message, read_answer};

#[cfg(test)]
mod tests;

/// So long answers are kept.
pub const KEPT_FOR: Duration = Duration::from_hours(24);
/// A longer answer is not kept, and a repeated call is made again.
const ANSWER_BYTES: usize = 64 << 10;
/// How long the catalog may take.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer waits until it is kept.
const KEEP_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a call asks whether another one with its id has been answered.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Calls that wait for others with their ids, at one node. A tenant has a quarter.
const WAITING_MAX: usize = 16;
/// What a row takes beside its answer.
const ROW_BYTES: usize = 128;
/// The calls that answer with operations as they are by then: what an id has begun is with these.
const OPERATIONS: [&str; 2] = ["StartOperation", "DeleteNamespace"];
/// The calls whose answer has a secret, which is kept nowhere.
const SECRETS: [&str; 2] = ["CreateToken", "RotateToken"];
/// Why such a call is not answered as the first time.
const SECRET_WAS_TOLD: &str =
    "was used for this call, whose answer has a secret that is told once: rotate the token for another one";

/// Knows which calls were made.
pub struct Repeats {
    /// Where they are kept. `None`: the node has no catalog, and a repeated call is made again.
    catalog: Option<Arc<dyn Catalog>>,
    /// By which they are forgotten.
    clock: Arc<dyn Clock>,
    /// The most bytes of an id.
    id_bytes: usize,
    /// The longest that a call may take.
    call_timeout: Duration,
    /// For those that wait for others.
    waiting: Arc<TenantBudget>,
}

/// A call that is about to be made.
#[derive(Clone, Copy)]
pub struct Attempt<'a> {
    /// As in `PauseTopic`.
    pub method: &'a str,
    /// By which its caller names it. Empty: by nothing.
    pub request_id: &'a str,
    /// The tenant that it is about. Empty: none.
    pub namespace: &'a str,
    /// Its message, as gRPC frames it.
    pub request: &'a [u8],
    /// Who makes it.
    pub caller: &'a Identity,
}

/// What is known of a call.
pub enum Begun {
    /// It has no id, or needs none here.
    Unnamed,
    /// It is to be made.
    First(NamedCall),
    /// It was made before, and this was the answer.
    Answered(Response<Body>),
}

/// A call that is being made under an id. Dropped without an answer it counts as given up.
pub struct NamedCall {
    /// Keeps its answer.
    catalog: Arc<dyn Catalog>,
    /// Names it.
    id: [u8; 32],
    /// When it began: its row says so as long as no other call has taken its place.
    begun_at: Timestamp,
    /// It counts as one that began then if it is given up.
    over: Timestamp,
    /// Its answer has a secret.
    is_secret: bool,
    /// What becomes of it is being written down.
    has_ended: bool,
}

impl Repeats {
    /// Keeps answers in this catalog. An id has so many bytes at most, and a call is over after this time.
    pub fn new(
        catalog: Option<Arc<dyn Catalog>>,
        clock: Arc<dyn Clock>,
        id_bytes: usize,
        call_timeout: Duration,
    ) -> Arc<Self> {
        Arc::new(Self { catalog, clock, id_bytes, call_timeout, waiting: TenantBudget::new(WAITING_MAX) })
    }

    /// Finds out whether a call was made before. If another one with its id is under way, waits for its end.
    pub async fn begin(&self, attempt: Attempt<'_>) -> Result<Begun, Refusal> {
        let Attempt { method, request_id, request, caller, .. } = attempt;
        if request_id.is_empty() || OPERATIONS.contains(&method) {
            return Ok(Begun::Unnamed);
        }
        if request_id.len() > self.id_bytes {
            let message = format!("has {} bytes; at most {} are allowed", request_id.len(), self.id_bytes);
            return Err(Refusal::too_large("request_id", message));
        }
        let Some(catalog) = self.catalog.clone() else { return Ok(Begun::Unnamed) };
        let id = id_of(caller, request_id);
        let digest = hash(&[method.as_bytes(), first_message(request).unwrap_or_default()]);
        let is_secret = SECRETS.contains(&method);
        let mut turn = None;
        loop {
            let begun_at = self.clock.wall();
            let over_before = begun_at.minus(self.call_timeout);
            let new =
                NewRequest { id, digest, begun_at, over_before, forget_before: begun_at.minus(KEPT_FOR) };
            match ask(&*catalog, &new).await? {
                // Whoever began it may have died before its effect, and none of these calls does harm twice.
                RequestFound::First => {
                    let over = over_before.minus(Duration::from_micros(1));
                    let call = NamedCall { catalog, id, begun_at, over, is_secret, has_ended: false };
                    return Ok(Begun::First(call));
                }
                RequestFound::UnderWay => {
                    turn = match turn {
                        None => Some(self.wait(&attempt)?),
                        waits => waits,
                    };
                    sleep(ASK_EVERY).await;
                }
                RequestFound::Answered(_) if is_secret => return Err(reused(SECRET_WAS_TOLD)),
                RequestFound::Answered(answer) => return Ok(Begun::Answered(answer_of(&answer))),
                RequestFound::Differs => {
                    return Err(reused("was used for another call, or with other fields"));
                }
            }
        }
    }

    /// A place among those that wait, as long as it is held. What is about no tenant is its caller's.
    fn wait(&self, attempt: &Attempt<'_>) -> Result<Charge, Refusal> {
        let tenant: Namespace = match attempt.namespace {
            // A blank is in no name.
            "" => format!("caller {}", attempt.caller.id).into(),
            namespace => namespace.into(),
        };
        self.waiting.take(&tenant, 1).map_err(|_| crowded())
    }
}

/// Asks the catalog what is known of a call.
async fn ask(catalog: &dyn Catalog, new: &NewRequest) -> Result<RequestFound, Refusal> {
    match tokio::time::timeout(CATALOG_TIMEOUT, catalog.begin_request(new)).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => {
            tracing::warn!(%error, "it can't be found out in the catalog whether a call is repeated");
            Err(unavailable("it does not answer, or its schema is older than this program"))
        }
        Err(_) => Err(unavailable("it does not answer")),
    }
}

impl NamedCall {
    /// Keeps the answer of the call, or forgets the call if it had no effect. Returns how many bytes are
    /// kept.
    pub async fn end(mut self, response: Response<Body>) -> (Response<Body>, usize) {
        let (response, answer) = read_answer(response).await;
        let (end, bytes) = match answer {
            Some(_) if self.is_secret => (RequestEnd::Answered(Vec::new()), 0),
            Some(answer) if answer.len() <= ANSWER_BYTES => {
                (RequestEnd::Answered(answer.to_vec()), answer.len())
            }
            _ => (RequestEnd::NoEffect, 0),
        };
        let write = tokio::spawn(self.write(end));
        // It goes on without us.
        let _ = tokio::time::timeout(KEEP_TIMEOUT, write).await;
        (response, ROW_BYTES + bytes)
    }

    /// Writes down how the call ended.
    fn write(&mut self, end: RequestEnd) -> impl Future<Output = ()> + use<> {
        self.has_ended = true;
        let (catalog, id, begun_at) = (self.catalog.clone(), self.id, self.begun_at);
        async move {
            let ended = catalog.end_request(&id, begun_at, &end);
            let why = match tokio::time::timeout(CATALOG_TIMEOUT, ended).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {CATALOG_TIMEOUT:?}"),
            };
            tracing::warn!(error = why, "the end of a call is not kept: repeated, it is made again");
        }
    }
}

/// Its caller went away, or its deadline passed: whoever repeats it need not wait until it would be over.
impl Drop for NamedCall {
    fn drop(&mut self) {
        if !self.has_ended {
            tokio::spawn(self.write(RequestEnd::GivenUp(self.over)));
        }
    }
}

/// Names a call. Ids of different callers have nothing to do with each other.
pub fn id_of(caller: &Identity, request_id: &str) -> [u8; 32] {
    let kind: &[u8] = match caller.kind {
        Kind::Anyone => b"anyone",
        Kind::Token => b"token",
        Kind::Certificate => b"certificate",
    };
    hash(&[kind, caller.id.as_bytes(), request_id.as_bytes()])
}

/// Names the operation that a call begins. Another caller of the namespace may use the same id for another
/// one.
pub fn operation_of(caller: &Identity, namespace: &str, request_id: &str) -> [u8; 16] {
    short(hash(&[namespace.as_bytes(), &id_of(caller, request_id)]))
}

/// What such a call asks for, in short.
pub fn digest_of(request: &[u8]) -> [u8; 16] {
    short(hash(&[request]))
}

/// The first half: nobody finds two texts that have it alike.
fn short(hash: [u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    half
}

/// The refusal of an id that was used before.
pub fn reused(why: &str) -> Refusal {
    Refusal { field: Some("request_id".into()), ..Refusal::new(Reason::RequestIdReused, why) }
}

fn crowded() -> Refusal {
    let message = "too many calls wait at this node for others with their request ids; retry later";
    Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER)
}

fn unavailable(why: &str) -> Refusal {
    let message = format!("the catalog can't say whether the call was made before, so it is not made: {why}");
    Refusal::new(Reason::CatalogUnavailable, message).retry_after(RETRY_AFTER)
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
