//! Calls for operators that name themselves (`request_id`) are made once: who repeats one is answered as the
//! first time.
//!
//! The admission layer does it, between the audit record and the handler, so that no handler can forget it.
//! The calls that answer with operations as they are by then know their ids themselves.

use std::{sync::Arc, time::Duration};

use forebay_access::{Identity, Kind};
use forebay_engine::RETRY_AFTER;
use forebay_store::{Catalog, NewRequest, RequestEnd, RequestFound};
use forebay_types::{Clock, Reason, Refusal, Timestamp};
use http::Response;
use sha2::{Digest as _, Sha256};
use tokio::{sync::Semaphore, time::sleep};
use tonic::body::Body;

use crate::grpc::frame::{answer_of, first_message, read_answer};

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
/// Calls that wait for others with their ids, at one node.
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
    waiting: Semaphore,
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
        Arc::new(Self { catalog, clock, id_bytes, call_timeout, waiting: Semaphore::new(WAITING_MAX) })
    }

    /// Finds out whether a call was made before. If another one with its id is under way, waits for its end.
    /// `method`: as in `PauseTopic`; `request`: as gRPC frames it.
    pub async fn begin(
        &self,
        method: &str,
        request_id: &str,
        request: &[u8],
        caller: &Identity,
    ) -> Result<Begun, Refusal> {
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
                        None => Some(self.waiting.try_acquire().map_err(|_| crowded())?),
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

/// The refusal of an id that was used before.
pub fn reused(why: &str) -> Refusal {
    Refusal { field: Some("request_id".into()), ..Refusal::new(Reason::RequestIdReused, why) }
}

fn crowded() -> Refusal {
    let message = format!("{WAITING_MAX} calls wait at this node for others with their request ids");
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

#[cfg(test)]
mod tests {
    use forebay_proto::FILE_DESCRIPTOR_SET;
    use forebay_store::SqliteCatalog;
    use forebay_types::{ClusterId, SystemClock};
    use prost_reflect::DescriptorPool;
    use tempfile::TempDir;

    use super::*;

    /// A catalog, and the folder in which it is.
    async fn migrated() -> (TempDir, Arc<dyn Catalog>) {
        let folder = tempfile::tempdir().unwrap();
        let catalog: Arc<dyn Catalog> = Arc::new(SqliteCatalog::new(folder.path().join("catalog.db")));
        catalog.migrate(ClusterId::default()).await.unwrap();
        (folder, catalog)
    }

    /// Keeps answers in this catalog.
    fn repeats_in(catalog: Arc<dyn Catalog>, call_timeout: Duration) -> Arc<Repeats> {
        Repeats::new(Some(catalog), Arc::new(SystemClock::default()), 10, call_timeout)
    }

    /// The answer that is there already, or what the call is to be made under.
    async fn begin(repeats: &Repeats, method: &str, request: &[u8]) -> Result<Begun, Refusal> {
        repeats.begin(method, "id", request, &holder("1")).await
    }

    async fn first(repeats: &Repeats, method: &str) -> NamedCall {
        match begin(repeats, method, REQUEST).await {
            Ok(Begun::First(call)) => call,
            _ => panic!("it is made"),
        }
    }

    /// So long a call takes at most.
    const CALL: Duration = Duration::from_secs(30);
    /// A frame with a message of one byte.
    const REQUEST: &[u8] = b"\0\0\0\0\x01x";

    #[tokio::test]
    async fn a_call_is_answered_as_the_first_time_and_one_without_effect_is_made_again() {
        let (_folder, catalog) = migrated().await;
        let repeats = repeats_in(catalog, CALL);
        let refused = first(&repeats, "PutTopic").await.end(tonic::Status::aborted("no").into_http()).await;
        assert_eq!(refused.1, ROW_BYTES);
        let (_, kept) = first(&repeats, "PauseTopic").await.end(answer_of(b"paused")).await;
        assert_eq!(kept, ROW_BYTES + 6);
        let Ok(Begun::Answered(again)) = begin(&repeats, "PauseTopic", REQUEST).await else { panic!() };
        assert_eq!(read_answer(again).await.1.as_deref(), Some(&b"paused"[..]));
        for (method, request) in [("PutTopic", REQUEST), ("PauseTopic", b"\0\0\0\0\x01y")] {
            let refusal = begin(&repeats, method, request).await.err().unwrap();
            assert_eq!(refusal.reason, Reason::RequestIdReused);
        }
        let long = repeats.begin("PutTopic", "12345678901", REQUEST, &holder("1")).await.err().unwrap();
        assert_eq!((long.reason, long.field.as_deref()), (Reason::TooLarge, Some("request_id")));
        for (method, id) in [("PutTopic", ""), ("StartOperation", "id")] {
            let begun = repeats.begin(method, id, REQUEST, &holder("1")).await;
            assert!(matches!(begun, Ok(Begun::Unnamed)));
        }
    }

    #[tokio::test]
    async fn a_call_waits_for_another_one_with_its_id() {
        let (_folder, catalog) = migrated().await;
        let repeats = repeats_in(catalog.clone(), CALL);
        let call = first(&repeats, "PauseTopic").await;
        let mut waits = Box::pin(begin(&repeats, "PauseTopic", REQUEST));
        assert!(
            tokio::time::timeout(2 * ASK_EVERY, &mut waits).await.is_err(),
            "it is not made beside the first"
        );
        call.end(answer_of(b"paused")).await;
        assert!(matches!(waits.await, Ok(Begun::Answered(_))));

        // Given up, or with a node that died: nobody knows what became of it.
        let other = repeats_in(catalog, Duration::ZERO);
        let given_up = async |repeats: &Repeats| repeats.begin("PutTopic", "up", REQUEST, &holder("1")).await;
        drop(given_up(&repeats).await);
        let Ok(Begun::First(call)) = given_up(&repeats).await else { panic!("it is made again") };
        let Ok(Begun::First(again)) = given_up(&other).await else { panic!("it is over") };
        // Its place was taken: how it ends is not how the other one does.
        call.end(tonic::Status::aborted("late").into_http()).await;
        again.end(answer_of(b"put")).await;
        let Ok(Begun::Answered(answer)) = given_up(&repeats).await else { panic!("it was answered") };
        assert_eq!(read_answer(answer).await.1.as_deref(), Some(&b"put"[..]));
    }

    /// Each waits in the catalog.
    #[tokio::test]
    async fn so_many_wait_and_no_more() {
        let (_folder, catalog) = migrated().await;
        let repeats = repeats_in(catalog, CALL);
        let _call = first(&repeats, "PauseTopic").await;
        let calls = (0..=WAITING_MAX).map(|_| begin(&repeats, "PauseTopic", REQUEST));
        let (answer, ..) = futures_util::future::select_all(calls.map(Box::pin)).await;
        assert_eq!(answer.err().unwrap().reason, Reason::Overloaded);
    }

    /// The effect is there, so its caller hears of it.
    #[tokio::test]
    async fn an_answer_that_can_not_be_kept_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Arc::new(SqliteCatalog::new(folder.path().join("catalog.db")));
        let (id, begun_at, over) = ([1; 32], Timestamp::from_micros(2), Timestamp::from_micros(1));
        let call =
            NamedCall { catalog: catalog.clone(), id, begun_at, over, is_secret: false, has_ended: false };
        assert!(catalog.end_request(&id, begun_at, &RequestEnd::NoEffect).await.is_err(), "it has no table");
        let (answer, _) = call.end(answer_of(b"paused")).await;
        assert_eq!(read_answer(answer).await.1.as_deref(), Some(&b"paused"[..]));
        let repeats = repeats_in(catalog, CALL);
        let refusal = begin(&repeats, "PauseTopic", REQUEST).await.err().unwrap();
        assert_eq!(refusal.reason, Reason::CatalogUnavailable);
    }

    #[tokio::test]
    async fn a_secret_is_not_kept_and_a_long_answer_neither() {
        let (_folder, catalog) = migrated().await;
        let repeats = repeats_in(catalog, CALL);
        let long = answer_of(&vec![1; ANSWER_BYTES + 1]);
        assert_eq!(first(&repeats, "ApplySettings").await.end(long).await.1, ROW_BYTES);
        let told = first(&repeats, "CreateToken").await.end(answer_of(b"secret")).await;
        assert_eq!((read_answer(told.0).await.1.as_deref(), told.1), (Some(&b"secret"[..]), ROW_BYTES));
        let refusal = begin(&repeats, "CreateToken", REQUEST).await.err().unwrap();
        assert_eq!(refusal.reason, Reason::RequestIdReused);
    }

    fn holder(id: &str) -> Identity {
        Identity { kind: Kind::Token, id: id.to_owned(), ..Identity::anyone() }
    }

    #[test]
    fn the_calls_with_secrets_are_those_whose_answer_has_one() {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let admin = pool.get_service_by_name("forebay.v1.AdminService").unwrap();
        let told = |method: &prost_reflect::MethodDescriptor| {
            let has_id = method.input().get_field_by_name("request_id").is_some();
            has_id && method.output().get_field_by_name("secret").is_some()
        };
        let secret: Vec<_> = admin.methods().filter(told).map(|it| it.name().to_owned()).collect();
        assert_eq!(secret, SECRETS);
        for name in OPERATIONS {
            assert!(admin.methods().any(|method| method.name() == name), "{name}");
        }
    }

    #[test]
    fn callers_have_ids_of_their_own() {
        let ids = [
            id_of(&Identity::anyone(), "1"),
            id_of(&holder("1"), "1"),
            id_of(&holder("2"), "1"),
            id_of(&holder("1"), "2"),
            id_of(&Identity { kind: Kind::Certificate, ..holder("1") }, "1"),
            id_of(&holder("11"), ""),
            id_of(&holder(""), "11"),
        ];
        let mut different = ids.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), ids.len());
    }
}
