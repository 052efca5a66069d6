//! Tokens that tokens make, what somebody tries without a right to it, and a revocation while a call waits.
//! On SQLite: nothing of this depends on the server.

use std::time::Duration;

use forebay_access::Token;
use forebay_proto::v1::{
    AuditOutcome, CreateTokenRequest, DeleteNamespaceRequest, DequeueRequest, DrainNodeRequest, EnqueueItem,
    EnqueueRequest, ListAuditRecordsRequest, ListTokensRequest, PauseTopicRequest, RevokeTokenRequest,
    RotateTokenRequest, Side, TopicDemand, WhoAmIRequest, queue_service_client::QueueServiceClient,
    topic_demand::Selector,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tonic::{service::interceptor::InterceptedService, transport::Channel};

use super::{
    nodes::Nodes,
    tokens::{OWN, Shows, admin, guarded, new, reason, says, start},
};
use crate::{node::Node, wire::http1::Request};

const SOON: Duration = Duration::from_secs(20);

/// A node that accepts tokens of a catalog, with the first of these.
async fn node() -> (Nodes, TempDir, Node, String) {
    let folder = tempfile::Builder::new().prefix("forebay-made-").tempdir().unwrap();
    let url = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    let cluster = Nodes::on(&url("catalog.db"), &[url("1.db")], 1).await;
    let first = guarded(&cluster).await;
    let node = start(&cluster, 0).await;
    (cluster, folder, node, first)
}

fn id(token: &str) -> String {
    Token::parse(token).unwrap().id().to_string()
}

async fn make(node: &Node, by: &str, request: CreateTokenRequest) -> String {
    admin(node, by).create_token(request).await.unwrap().into_inner().secret
}

fn queue(node: &Node, token: &str) -> QueueServiceClient<InterceptedService<Channel, Shows>> {
    QueueServiceClient::with_interceptor(node.channel(), Shows::of(token))
}

#[tokio::test]
async fn a_token_ends_no_later_than_its_maker_and_is_revoked_with_it() {
    let (_cluster, _folder, node, first) = node().await;
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let own = |name: &str| new(OWN, name, &[(OWN, &["admin", "observe"])]);
    let lasting = make(&node, &first, own("lasting")).await;
    let brief = CreateTokenRequest { lifetime: seconds(3_600), ..own("brief") };
    let brief = make(&node, &first, brief).await;
    let longer = CreateTokenRequest { lifetime: seconds(3_600), ..own("longer") };
    sleep(Duration::from_millis(10)).await;
    assert_eq!(reason(admin(&node, &brief).create_token(longer).await), "INVALID_FIELD");
    let child = admin(&node, &brief).create_token(own("child")).await.unwrap().into_inner();
    let (made, child) = (child.token.unwrap(), child.secret);
    assert_eq!(made.made_by_id, id(&brief));
    let listed = ListTokensRequest { namespace: OWN.to_owned(), ..Default::default() };
    let listed = admin(&node, &first).list_tokens(listed).await.unwrap().into_inner().tokens;
    let end = |of: &str| listed.iter().find(|it| it.id == id(of)).unwrap().ends_at;
    assert_eq!(end(&child), end(&brief), "without a lifetime it ends with its maker");
    let rotate = |token: &str| RotateTokenRequest {
        namespace: OWN.to_owned(),
        token_id: id(token),
        ..Default::default()
    };
    // Else it would have the rights for as long as that one.
    assert_eq!(reason(admin(&node, &brief).rotate_token(rotate(&lasting)).await), "NOT_ALLOWED");
    let grandchild = make(&node, &child, own("grandchild")).await;

    let revoke = |with_descendants| RevokeTokenRequest {
        namespace: OWN.to_owned(),
        token_id: id(&brief),
        with_descendants,
        ..Default::default()
    };
    let revoked = admin(&node, &first).revoke_token(revoke(false)).await.unwrap().into_inner();
    assert_eq!(revoked.descendants, 2);
    says(&node, &brief, Err("BAD_CREDENTIALS")).await;
    says(&node, &grandchild, Ok("grandchild")).await;
    let revoked = admin(&node, &first).revoke_token(revoke(true)).await.unwrap().into_inner();
    assert_eq!(revoked.descendants, 2);
    // They are of no use once that is answered.
    for gone in [&child, &grandchild] {
        assert_eq!(reason(admin(&node, gone).who_am_i(WhoAmIRequest {}).await), "BAD_CREDENTIALS");
    }
    says(&node, &lasting, Ok("lasting")).await;
}

#[tokio::test]
async fn a_call_that_waits_hands_out_nothing_after_its_token_was_revoked() {
    let (_cluster, _folder, node, first) = node().await;
    let worker = make(&node, &first, new(OWN, "worker", &[(OWN, &["consume"])])).await;
    let demand = TopicDemand { selector: Some(Selector::Topic("t".to_owned())), max_items: 1 };
    let dequeue = move |seconds| DequeueRequest {
        namespace: OWN.to_owned(),
        demands: vec![demand.clone()],
        wait: Some(prost_types::Duration { seconds, nanos: 0 }),
        ..Default::default()
    };
    let item = EnqueueItem { topic: "t".to_owned(), ..Default::default() };
    let enqueue = EnqueueRequest { namespace: OWN.to_owned(), items: vec![item], ..Default::default() };
    let (mut waiting, long) = (queue(&node, &worker), dequeue(20));
    let waiting = tokio::spawn(async move { waiting.dequeue(long).await });
    let begun = Instant::now();
    loop {
        let request = Request::get("/status.json").with("Authorization", &format!("Bearer {first}"));
        if request.send(&node.http).await.message()["engine"]["polls"] == 1 {
            break;
        }
        assert!(begun.elapsed() < SOON);
    }
    let revoke =
        RevokeTokenRequest { namespace: OWN.to_owned(), token_id: id(&worker), ..Default::default() };
    admin(&node, &first).revoke_token(revoke).await.unwrap();
    queue(&node, &first).enqueue(enqueue).await.unwrap();
    assert_eq!(reason(waiting.await.unwrap()), "BAD_CREDENTIALS");
    // It is given back.
    let got = queue(&node, &first).dequeue(dequeue(10)).await.unwrap().into_inner();
    assert_eq!(got.items.len(), 1);
}

#[tokio::test]
async fn what_somebody_may_not_do_is_written_down_and_told_to_operators() {
    let (_cluster, _folder, node, first) = node().await;
    let tenant = make(&node, &first, new(OWN, "tenant", &[(OWN, &["admin"])])).await;
    let other = make(&node, &first, new("other", "victim", &[("other", &["admin"])])).await;
    let mut calls = admin(&node, &tenant);
    let foreign = CreateTokenRequest { ..new("other", "evil", &[("other", &["admin"])]) };
    assert_eq!(reason(calls.create_token(foreign).await), "WRONG_NAMESPACE");
    let delete = DeleteNamespaceRequest { namespace: "other".to_owned(), force: true, ..Default::default() };
    assert_eq!(reason(calls.delete_namespace(delete).await), "WRONG_NAMESPACE");
    let drain = DrainNodeRequest { node: "node0".to_owned(), ..Default::default() };
    assert_eq!(reason(calls.drain_node(drain).await), "SCOPE_MISSING");
    let (sides, note) = (vec![Side::Enqueue.into()], "n".repeat(900));
    let pause =
        PauseTopicRequest { namespace: OWN.into(), topic: "t".into(), sides, note, ..Default::default() };
    assert_eq!(reason(calls.pause_topic(pause).await), "SCOPE_MISSING");

    let denied = async |token: &str, namespace: &str| {
        let (namespace, outcome) = (namespace.to_owned(), AuditOutcome::Denied.into());
        let request = ListAuditRecordsRequest { namespace, outcome, ..Default::default() };
        let records = admin(&node, token).list_audit_records(request).await.unwrap().into_inner().records;
        let mut told: Vec<_> = records.into_iter().map(|it| (it.method, it.failure, it.principal)).collect();
        told.sort_unstable();
        told
    };
    let row = |method: &str, failure: &str| (method.to_owned(), failure.to_owned(), "tenant".to_owned());
    let expected = [
        row("CreateToken", "WRONG_NAMESPACE"),
        row("DeleteNamespace", "WRONG_NAMESPACE"),
        row("DrainNode", "SCOPE_MISSING"),
        row("PauseTopic", "SCOPE_MISSING"),
    ];
    assert_eq!(denied(&first, "-").await, expected);
    assert_eq!(denied(&first, "other").await, expected[..2]);
    assert_eq!(denied(&tenant, OWN).await, expected[3..]);
    assert_eq!(denied(&other, "other").await, [], "one tenant learns nothing of another");
    let metrics = Request::get("/metrics").with("Authorization", &format!("Bearer {first}"));
    let metrics = metrics.send(&node.http).await.text();
    assert!(metrics.contains("method=\"DrainNode\",reason=\"SCOPE_MISSING\"} 1"), "{metrics}");
}
