//! What becomes of calls that name themselves.

use forebay_proto::FILE_DESCRIPTOR_SET;
use forebay_store::SqliteCatalog;
use forebay_types::{ClusterId, SystemClock};
use prost_reflect::DescriptorPool;
use tempfile::TempDir;
use tokio::task::JoinSet;

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

/// A call about a tenant.
fn attempt<'a>(method: &'a str, id: &'a str, request: &'a [u8], caller: &'a Identity) -> Attempt<'a> {
    Attempt { method, request_id: id, namespace: "a", request, caller }
}

/// The answer that is there already, or what the call is to be made under.
async fn begin(repeats: &Repeats, method: &str, request: &[u8]) -> Result<Begun, Refusal> {
    repeats.begin(attempt(method, "id", request, &holder("1"))).await
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
    let caller = holder("1");
    let long = repeats.begin(attempt("PutTopic", "12345678901", REQUEST, &caller)).await.err().unwrap();
    assert_eq!((long.reason, long.field.as_deref()), (Reason::TooLarge, Some("request_id")));
    for (method, id) in [("PutTopic", ""), ("StartOperation", "id")] {
        let begun = repeats.begin(attempt(method, id, REQUEST, &caller)).await;
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
    let given_up =
        async |repeats: &Repeats| repeats.begin(attempt("PutTopic", "up", REQUEST, &holder("1"))).await;
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
async fn so_many_wait_and_no_more_of_one_tenant() {
    let (_folder, catalog) = migrated().await;
    let repeats = repeats_in(catalog, CALL);
    let call = first(&repeats, "PauseTopic").await;
    let mut waiting = JoinSet::new();
    let begin_in = |waiting: &mut JoinSet<_>, namespace: &'static str, calls: usize| {
        for _ in 0..calls {
            let repeats = repeats.clone();
            waiting.spawn(async move {
                let caller = holder("1");
                let attempt = Attempt { namespace, ..attempt("PauseTopic", "id", REQUEST, &caller) };
                repeats.begin(attempt).await
            });
        }
    };
    let refused = async |waiting: &mut JoinSet<Result<Begun, Refusal>>| {
        let refusal = waiting.join_next().await.unwrap().unwrap().err().unwrap();
        assert_eq!(refusal.reason, Reason::Overloaded, "{refusal:?}");
    };
    begin_in(&mut waiting, "a", WAITING_MAX / 4 + 1);
    refused(&mut waiting).await;
    // What is about no tenant is its caller's.
    for other in ["b", "c", ""] {
        begin_in(&mut waiting, other, WAITING_MAX / 4);
    }
    while repeats.waiting.used() < WAITING_MAX {
        assert!(waiting.try_join_next().is_none(), "each waits");
        tokio::task::yield_now().await;
    }
    begin_in(&mut waiting, "d", 1);
    refused(&mut waiting).await;
    call.end(answer_of(b"paused")).await;
    let answers = waiting.join_all().await;
    assert_eq!(answers.len(), WAITING_MAX);
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Begun::Answered(_)))), "each is answered");
}

/// The effect is there, so its caller hears of it.
#[tokio::test]
async fn an_answer_that_can_not_be_kept_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = Arc::new(SqliteCatalog::new(folder.path().join("catalog.db")));
    let (id, begun_at, over) = ([1; 32], Timestamp::from_micros(2), Timestamp::from_micros(1));
    let call = NamedCall { catalog: catalog.clone(), id, begun_at, over, is_secret: false, has_ended: false };
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

#[test]
fn operations_of_two_callers_have_nothing_to_do_with_each_other() {
    let ids = [
        operation_of(&holder("1"), "shop", "r"),
        operation_of(&holder("2"), "shop", "r"),
        operation_of(&holder("1"), "bank", "r"),
        operation_of(&holder("1"), "shop", "s"),
    ];
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len());
    assert_eq!(operation_of(&holder("1"), "shop", "r"), ids[0], "a repeated call finds its operation");
}
