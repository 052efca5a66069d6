//! Calls for operators that name themselves (`request_id`) are made once: who repeats one is answered as the
//! first time.
//!
//! The admission layer does it, between the audit record and the handler, so that no handler can forget it.
//! The calls that answer with operations as they are by then know their ids themselves.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use forebay_access::{Identity, Kind};
use forebay_engine::RETRY_AFTER;
use forebay_store::{Catalog, NewRequest, RequestFound};
use forebay_types::{Clock, Reason, Refusal};
use http::Response;
use sha2::{Digest as _, Sha256};
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
/// What a row takes beside its answer.
const ROW_BYTES: usize = 128;
/// The calls that answer with operations as they are by then: what an id has begun is with these.
const OPERATIONS: [&str; 2] = ["StartOperation", "DeleteNamespace"];
/// The calls whose answer has a secret, which is kept nowhere.
const SECRETS: [&str; 2] = ["CreateToken", "RotateToken"];

/// Knows which calls were made.
pub struct Repeats {
    /// Where they are kept. `None`: the node has no catalog, and a repeated call is made again.
    catalog: Option<Arc<dyn Catalog>>,
    /// By which they are forgotten.
    clock: Arc<dyn Clock>,
    /// The most bytes of an id.
    id_bytes: usize,
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

/// A call that is being made under an id.
pub struct NamedCall {
    /// Keeps its answer.
    catalog: Arc<dyn Catalog>,
    /// Names it.
    id: [u8; 32],
    /// Its answer has a secret.
    is_secret: bool,
}

impl Repeats {
    /// Keeps answers in this catalog. An id has so many bytes at most.
    pub fn new(catalog: Option<Arc<dyn Catalog>>, clock: Arc<dyn Clock>, id_bytes: usize) -> Arc<Self> {
        Arc::new(Self { catalog, clock, id_bytes })
    }

    /// Finds out whether a call was made before. `method`: as in `PauseTopic`; `request`: as gRPC frames it.
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
        let begun_at = self.clock.wall();
        let new = NewRequest {
            id: id_of(caller, request_id),
            digest: hash(&[method.as_bytes(), first_message(request).unwrap_or_default()]),
            begun_at,
            forget_before: begun_at.minus(KEPT_FOR),
        };
        let found = match tokio::time::timeout(CATALOG_TIMEOUT, catalog.begin_request(&new)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::warn!(%error, "it can't be found out in the catalog whether a call is repeated");
                return Err(unavailable("it does not answer, or its schema is older than this program"));
            }
            Err(_) => return Err(unavailable("it does not answer")),
        };
        let is_secret = SECRETS.contains(&method);
        match found {
            // Whoever began it may have died before its effect, and none of these calls does harm twice.
            RequestFound::First | RequestFound::Unanswered => {
                Ok(Begun::First(NamedCall { catalog, id: new.id, is_secret }))
            }
            RequestFound::Answered(_) if is_secret => Err(reused(
                "was used for this call, whose answer has a secret that is told once: rotate the token to \
                 get another one",
            )),
            RequestFound::Answered(answer) => Ok(Begun::Answered(answer_of(&answer))),
            RequestFound::Differs => Err(reused("was used for another call, or with other fields")),
        }
    }
}

impl NamedCall {
    /// Keeps the answer of the call, or forgets the call if it had no effect. Returns how many bytes are
    /// kept.
    pub async fn end(self, response: Response<Body>) -> (Response<Body>, usize) {
        let (response, answer) = read_answer(response).await;
        let kept = match answer {
            Some(_) if self.is_secret => Some(Bytes::new()),
            answer => answer.filter(|answer| answer.len() <= ANSWER_BYTES),
        };
        let bytes = ROW_BYTES + kept.as_ref().map_or(0, Bytes::len);
        let write = tokio::spawn(async move {
            let write = self.catalog.end_request(&self.id, kept.as_deref());
            let why = match tokio::time::timeout(CATALOG_TIMEOUT, write).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {CATALOG_TIMEOUT:?}"),
            };
            tracing::warn!(error = why, "the answer of a call is not kept: repeated, it is made again");
        });
        // It goes on without us.
        let _ = tokio::time::timeout(KEEP_TIMEOUT, write).await;
        (response, bytes)
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

    use super::*;

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

    /// A frame with a message of one byte.
    const REQUEST: &[u8] = b"\0\0\0\0\x01x";

    #[tokio::test]
    async fn a_call_is_answered_as_the_first_time_and_one_without_effect_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let catalog: Arc<dyn Catalog> = Arc::new(SqliteCatalog::new(folder.path().join("catalog.db")));
        catalog.migrate(ClusterId::default()).await.unwrap();
        let repeats = Repeats::new(Some(catalog), Arc::new(SystemClock::default()), 10);
        let refused = first(&repeats, "PutTopic").await.end(tonic::Status::aborted("no").into_http()).await;
        assert_eq!(refused.1, ROW_BYTES);
        // Nobody knows what became of this one.
        drop(first(&repeats, "PauseTopic").await);
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
    async fn a_secret_is_not_kept_and_a_long_answer_neither() {
        let folder = tempfile::tempdir().unwrap();
        let catalog: Arc<dyn Catalog> = Arc::new(SqliteCatalog::new(folder.path().join("catalog.db")));
        catalog.migrate(ClusterId::default()).await.unwrap();
        let repeats = Repeats::new(Some(catalog), Arc::new(SystemClock::default()), 10);
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
