//! While the catalog can't write a call down, it is not made.

use forebay_proto::v1::{
    AuditOutcome, GetItemRequest, GetTopicRequest, ItemView, ListAuditRecordsRequest, PauseTopicRequest,
    Side, StartOperationRequest, admin_service_client::AdminServiceClient,
};
use forebay_testkit::{proxy::Ways, servers::Kind};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use super::nodes::{Nodes, metric};
use crate::collector::Collector;

const NAMESPACE: &str = "e2e";

fn pause(topic: &str) -> PauseTopicRequest {
    let sides = vec![Side::Dequeue.into()];
    PauseTopicRequest { namespace: NAMESPACE.into(), topic: topic.into(), sides, ..Default::default() }
}

fn unavailable<T: std::fmt::Debug>(answer: Result<T, Status>) {
    let status = answer.unwrap_err();
    let reason = status.get_details_error_info().unwrap().reason;
    assert_eq!((status.code(), reason.as_str()), (Code::Unavailable, "CATALOG_UNAVAILABLE"), "{status}");
}

async fn written(admin: &mut AdminServiceClient<Channel>) -> Vec<(String, AuditOutcome)> {
    let request = ListAuditRecordsRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let page = admin.list_audit_records(request).await.unwrap().into_inner();
    page.records.into_iter().map(|it| (it.target.clone(), it.outcome())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_catalog_nothing_is_changed_or_shown() {
    let (cluster, way) = Nodes::with_way_to_catalog(Kind::MariaDb, 1, 1).await;
    let node = cluster.start_all().await.remove(0);
    let mut admin = AdminServiceClient::new(node.channel());
    admin.pause_topic(pause("before")).await.unwrap();
    let before = vec![("before".to_owned(), AuditOutcome::Done)];
    assert_eq!(written(&mut admin).await, before);

    way.stall(Ways::Both);
    unavailable(admin.pause_topic(pause("while")).await);
    let (namespace, topic) = (NAMESPACE.to_owned(), "while".to_owned());
    let start = StartOperationRequest { namespace, topic, kind: 1, ..Default::default() };
    unavailable(admin.start_operation(start).await);
    let (namespace, item_id) = (NAMESPACE.to_owned(), "1-1".to_owned());
    let get = GetItemRequest { namespace, item_id, view: ItemView::Full.into(), max_payload_bytes: 0 };
    unavailable(admin.get_item(get.clone()).await);
    // A call that shows no payload goes on.
    let basic = GetItemRequest { view: ItemView::Basic.into(), ..get };
    assert_eq!(admin.get_item(basic).await.unwrap_err().code(), Code::NotFound);
    assert!(metric(&node, "forebay_audit_failures_total").await >= 3.0);
    way.pass();
    way.reset();

    admin.pause_topic(pause("after")).await.unwrap();
    let mut after = written(&mut admin).await;
    // Records that were on their way when the catalog fell silent may have arrived later: nothing is known of
    // their calls.
    after.retain(|(_, outcome)| *outcome != AuditOutcome::Intended);
    assert_eq!(after, [vec![("after".to_owned(), AuditOutcome::Done)], before].concat());
    let topic = |topic: &str| GetTopicRequest { namespace: NAMESPACE.into(), topic: topic.into() };
    let paused = admin.get_topic(topic("after")).await.map(|it| it.into_inner().topic.unwrap().pauses.len());
    assert!(paused.as_ref().is_ok_and(|pauses| *pauses == 1), "{paused:?}");
    let skipped = admin.get_topic(topic("while")).await.map(|it| it.into_inner().topic.unwrap().pauses);
    assert!(skipped.is_err() || skipped.unwrap().is_empty(), "it is not paused");
}

/// The caller has none: the node has begun it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_names_the_trace_that_the_node_began() {
    let collector = Collector::start().await;
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    cluster.configure(&collector.section(1.0));
    let node = cluster.start_all().await.remove(0);
    let mut admin = AdminServiceClient::new(node.channel());
    admin.pause_topic(pause("t")).await.unwrap();
    let request = ListAuditRecordsRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let record = admin.list_audit_records(request).await.unwrap().into_inner().records.remove(0);
    let spans = collector.calls(2).await;
    let pausing = spans.iter().find(|it| it.span.name.ends_with("/PauseTopic")).expect("has a span");
    assert_eq!((record.trace_id.len(), &record.trace_id), (32, &pausing.ids()[0]));
}
