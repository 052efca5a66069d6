//! Calls with a request id, whose nodes die.

use std::time::Duration;

use forebay_proto::v1::{
    CreateTokenRequest, CreateTokenResponse, ListTokensRequest, NamespaceSettings, PutNamespaceRequest,
    PutNamespaceResponse,
};
use forebay_testkit::{proxy::Spring, servers::Kind};
use tokio::time::Instant;
use tonic::{Code, Status};

use super::{
    nodes::Nodes,
    tokens::{OWN, admin, guarded, new, reason, says, start},
};
use crate::node::Node;

/// How a node writes down that a call was answered.
const ANSWERED: &[u8] = b"/* forebay request */ UPDATE request SET answer";
/// A call without an answer is over after this time.
const OVER_AFTER: Duration = Duration::from_secs(30);
/// It has been made again by then, on a machine that does much else.
const MADE_AGAIN_WITHIN: Duration = Duration::from_secs(90);

/// Sets the attempts of the namespace. `version`: what they replace.
fn attempts(attempts: u32, version: u64, id: &str) -> PutNamespaceRequest {
    PutNamespaceRequest {
        namespace: OWN.to_owned(),
        settings: Some(NamespaceSettings { default_max_attempts: attempts, ..Default::default() }),
        version,
        request_id: id.to_owned(),
        ..Default::default()
    }
}

async fn put(node: &Node, token: &str, request: PutNamespaceRequest) -> Result<PutNamespaceResponse, Status> {
    admin(node, token).put_namespace(request).await.map(tonic::Response::into_inner)
}

/// A token of this name, under the id `token`.
fn named(name: &str) -> CreateTokenRequest {
    CreateTokenRequest { request_id: "token".to_owned(), ..new(OWN, name, &[(OWN, &["observe"])]) }
}

async fn make(node: &Node, token: &str, name: &str) -> Result<CreateTokenResponse, Status> {
    admin(node, token).create_token(named(name)).await.map(tonic::Response::into_inner)
}

/// The tokens of the namespace: their ids and names.
async fn tokens(node: &Node, token: &str) -> Vec<(String, String)> {
    let request = ListTokensRequest { namespace: OWN.to_owned(), ..Default::default() };
    let page = admin(node, token).list_tokens(request).await.unwrap().into_inner();
    page.tokens.into_iter().map(|it| (it.id, it.name)).collect()
}

/// Repeats a call whose deadline passes while it waits for another one.
async fn until_over<T>(mut call: impl AsyncFnMut() -> Result<T, Status>) -> Result<T, Status> {
    loop {
        match call().await {
            Err(late) if late.code() == Code::DeadlineExceeded => {}
            end => return end,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_outlives_the_node_that_gave_it() {
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    let first = guarded(&cluster).await;
    let node = start(&cluster, 0).await;
    let told = put(&node, &first, attempts(5, 0, "put")).await.unwrap();
    let made = make(&node, &first, "one").await.unwrap().token.unwrap();
    node.kill9().await;

    let node = start(&cluster, 0).await;
    // Made again, the call would be refused: it names an earlier version.
    let later = put(&node, &first, attempts(6, told.version, "")).await.unwrap();
    assert_eq!(put(&node, &first, attempts(5, 0, "put")).await.unwrap(), told);
    assert_eq!(reason(put(&node, &first, attempts(7, 0, "put")).await), "REQUEST_ID_REUSED");
    let set = put(&node, &first, attempts(6, 0, "")).await.unwrap();
    assert_eq!(set.version, later.version, "nobody has changed it");

    assert_eq!(reason(make(&node, &first, "one").await), "REQUEST_ID_REUSED");
    assert_eq!(reason(make(&node, &first, "other").await), "REQUEST_ID_REUSED");
    assert_eq!(tokens(&node, &first).await, [(made.id, "one".to_owned())]);
}

/// Each of two nodes dies between the effect of a call and its end in the catalog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_node_died_is_made_again_once_it_is_over() {
    let (cluster, way) = Nodes::with_way_to_catalog(Kind::MariaDb, 2, 1).await;
    let first = guarded(&cluster).await;
    // The second one may get no shard, and needs none.
    let (here, there) = (start(&cluster, 0).await, cluster.start(1).await);
    says(&there, &first, Ok("first")).await;
    let (mut at_here, mut at_there) = (admin(&here, &first), admin(&there, &first));
    way.trap(ANSWERED, Spring::SilentBefore, 2);
    let begun = Instant::now();
    let killed = async {
        way.wait_sprung(2).await;
        here.kill9().await;
        there.kill9().await;
    };
    // Their callers may have heard of the effects, or of nothing.
    let puts = at_here.put_namespace(attempts(5, 0, "put"));
    let _ = tokio::join!(puts, at_there.create_token(named("one")), killed);

    let node = start(&cluster, 0).await;
    let made = tokens(&node, &first).await;
    assert!(matches!(&made[..], [(_, name)] if name == "one"), "{made:?}");
    assert_eq!(reason(put(&node, &first, attempts(7, 0, "put")).await), "REQUEST_ID_REUSED");
    let puts = async {
        let told = until_over(async || put(&node, &first, attempts(5, 0, "put")).await).await.unwrap();
        (told, begun.elapsed())
    };
    let makes = async {
        let made = until_over(async || make(&node, &first, "one").await).await;
        (made.unwrap_err(), begun.elapsed())
    };
    let ((told, put_after), (refused, made_after)) = tokio::join!(puts, makes);
    for took in [put_after, made_after] {
        assert!((OVER_AFTER..MADE_AGAIN_WITHIN).contains(&took), "it was made again after {took:?}");
    }
    // Settings that were made already are there, and so is the token.
    let set = put(&node, &first, attempts(5, 0, "")).await.unwrap();
    assert_eq!((told.version, told.settings), (set.version, set.settings));
    assert!(refused.message().contains(&made[0].0), "{refused}");
    assert_eq!(reason::<()>(Err(refused)), "REQUEST_ID_REUSED");
    assert_eq!(tokens(&node, &first).await, made);

    // From now on it is answered.
    put(&node, &first, attempts(6, set.version, "")).await.unwrap();
    assert_eq!(put(&node, &first, attempts(5, 0, "put")).await.unwrap(), told);
}
