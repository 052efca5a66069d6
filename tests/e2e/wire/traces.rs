//! Spans of calls: what is in them, and what calls notice of a collector that is not well.

use std::{collections::HashMap, fs, time::Duration};

use forebay_proto::v1::{
    Ack, AckRequest, DequeueRequest, EnqueueItem, EnqueueRequest, TopicDemand, topic_demand::Selector,
};
use forebay_testkit::servers::free_port;
use opentelemetry_proto::tonic::trace::v1::{span::SpanKind, status::StatusCode};
use serde_json::json;
use tokio::{net::TcpListener, time::Instant};
use tonic::{Code, Request};

use super::{NAMESPACE, Wire, http1, item, json::one};
use crate::collector::{CALLER, Collector, ReceivedSpan, TRACE, parent};

/// The spans of a call that stores an item: its own, that of its wait and that of the commit.
const SPANS_OF_ONE: i32 = 3;

/// A call that is part of a trace.
fn traced<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("traceparent", parent().parse().unwrap());
    request
}

fn stored(items: Vec<EnqueueItem>) -> EnqueueRequest {
    EnqueueRequest { namespace: NAMESPACE.into(), items, ..Default::default() }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().copied().map(owned).collect()
}

impl Wire {
    /// How often the log says something.
    fn logged(&self, text: &str) -> usize {
        fs::read_to_string(self.folder.path().join("log")).unwrap().matches(text).count()
    }
}

/// The name, the attributes and the status of a span.
type ExpectedSpan = (&'static str, Vec<(String, String)>, StatusCode);

/// Spans of the test below.
fn expected() -> [ExpectedSpan; 4] {
    let enqueue = "forebay.v1.QueueService/Enqueue";
    let (ok, unset) = ("rpc.response.status_code", StatusCode::Unset);
    let items = [
        ("messaging.batch.message_count", "1"),
        ("messaging.destination.partition.id", "2"),
        ("messaging.system", "forebay"),
        ("rpc.method", enqueue),
    ];
    let of_items = |rest: &[(&str, &str)]| pairs(&[&items, rest].concat());
    [
        (enqueue, of_items(&[(ok, "OK"), ("rpc.system.name", "grpc")]), unset),
        (enqueue, of_items(&[("rpc.system.name", "connectrpc")]), unset),
        (
            enqueue,
            pairs(&[
                ("error.type", "INVALID_FIELD"),
                ("rpc.method", enqueue),
                (ok, "INVALID_ARGUMENT"),
                ("rpc.system.name", "grpc"),
            ]),
            unset,
        ),
        (
            "connectrpc",
            pairs(&[
                ("error.type", "UNIMPLEMENTED"),
                ("rpc.method", "_OTHER"),
                (ok, "unimplemented"),
                ("rpc.system.name", "connectrpc"),
            ]),
            StatusCode::Error,
        ),
    ]
}

#[tokio::test]
async fn each_call_of_a_trace_has_a_span_with_nothing_of_what_callers_send() {
    let collector = Collector::start().await;
    let wire = Wire::with(&collector.section(0.0)).await;

    let mut request = traced(stored(vec![EnqueueItem {
        topic: "private-topic".into(),
        payload: "private-payload".into(),
        metadata: "private-metadata".into(),
        headers: [("private-name".to_owned(), "private-value".to_owned())].into(),
        shard: Some(2),
        ..Default::default()
    }]));
    request.metadata_mut().insert("x-private", "private-call".parse().unwrap());
    request.metadata_mut().insert("tracestate", "vendor=1".parse().unwrap());
    wire.client().enqueue(request).await.unwrap();
    let items = json!([{"topic": "private-topic", "payload": "cHJpdmF0ZQ==", "shard": 2}]);
    let message = json!({"namespace": NAMESPACE, "items": items});
    let call = http1::Request::call("Enqueue", &message).with("traceparent", &parent());
    wire.http(call).await.message();
    // This caller has no trace, and the ratio begins none.
    wire.stored(vec![item("t")]).await;
    let nameless = EnqueueRequest { namespace: "private namespace".into(), ..stored(vec![item("t")]) };
    let refused = wire.client().enqueue(traced(nameless)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let unknown = http1::Request::call("private-method", &json!({})).with("traceparent", &parent());
    wire.http(unknown).await.failure(501, "unimplemented");

    let spans = collector.calls(4).await;
    assert_eq!(spans.len(), 4, "{spans:#?}");
    let said = format!("{spans:?}");
    assert!(!said.contains("private") && !said.contains(NAMESPACE), "{said}");
    for (seen, (name, attributes, status)) in spans.iter().zip(expected()) {
        let [trace, own, above] = seen.ids();
        assert_eq!((trace.as_str(), above.as_str()), (TRACE, CALLER));
        assert!(own != CALLER && seen.span.end_time_unix_nano >= seen.span.start_time_unix_nano);
        assert_eq!((seen.span.name.as_str(), seen.span.kind()), (name, SpanKind::Server));
        assert_eq!(seen.attributes(), attributes);
        let given = seen.span.status.clone().unwrap_or_default();
        assert_eq!((given.code(), given.message.as_str()), (status, ""));
        assert!(seen.sender.contains(&("service.name".to_owned(), "forebay".to_owned())), "{seen:?}");
    }
    assert_eq!(spans[0].span.trace_state, "vendor=1");
}

#[tokio::test]
async fn an_item_carries_the_trace_of_its_call_to_its_consumer() {
    let wire = Wire::start().await;
    let own = parent().replace(TRACE, "0af7651916cd43dd8448eb211c80319c");
    let with = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    let full: HashMap<String, String> = (0..16).map(|n| (format!("h{n}"), String::new())).collect();
    let mut request = traced(stored(vec![
        item("none"),
        EnqueueItem { headers: with("traceparent", &own), ..item("own") },
        EnqueueItem { headers: with("traceparent", "malformed"), ..item("malformed") },
        EnqueueItem { headers: full.clone(), ..item("full") },
    ]));
    request.metadata_mut().insert("tracestate", "vendor=1".parse().unwrap());
    let results = wire.client().enqueue(request).await.unwrap().into_inner().results;
    assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
    wire.http(http1::Request::call("Enqueue", &one("p")).with("traceparent", &parent())).await.message();

    let both = HashMap::from([("traceparent", parent().as_str()), ("tracestate", "vendor=1")].map(owned));
    assert_eq!(wire.take_one("none").await.headers, both);
    assert_eq!(wire.take_one("own").await.headers, with("traceparent", &own));
    assert_eq!(wire.take_one("malformed").await.headers, both);
    assert_eq!(wire.take_one("full").await.headers, full);
    assert_eq!(wire.take_one("t").await.headers, with("traceparent", &parent()));
}

#[tokio::test]
async fn a_trace_says_where_the_time_of_a_call_went_and_whence_its_items_come() {
    let collector = Collector::start().await;
    let wire = Wire::with(&collector.section(0.0)).await;
    wire.client().enqueue(traced(stored(vec![item("t")]))).await.unwrap();
    let demands = vec![TopicDemand { selector: Some(Selector::Topic("t".into())), max_items: 1 }];
    let dequeue = DequeueRequest { namespace: NAMESPACE.into(), demands, ..Default::default() };
    let items = wire.client().dequeue(traced(dequeue)).await.unwrap().into_inner().items;
    let acks = vec![Ack { receipt: items[0].receipt.clone() }];
    let ack = AckRequest { namespace: NAMESPACE.into(), acks };
    wire.client().ack(traced(ack)).await.unwrap();

    let calls = collector.calls(3).await;
    for call in &calls {
        let mut below = collector.below(call);
        below.sort_by_key(|seen| seen.span.start_time_unix_nano);
        let names: Vec<_> = below.iter().map(|seen| seen.span.name.as_str()).collect();
        assert_eq!(names, ["forebay.wait", "forebay.commit"], "{call:?}");
        assert!(below.iter().all(|seen| seen.span.kind() == SpanKind::Internal));
        let (call, wait, commit) = (&call.span, &below[0].span, &below[1].span);
        assert_eq!(wait.start_time_unix_nano, call.start_time_unix_nano);
        assert_eq!(wait.end_time_unix_nano, commit.start_time_unix_nano);
        assert!(commit.end_time_unix_nano <= call.end_time_unix_nano);
        let said = below[1].attributes();
        let named: Vec<_> = said.iter().map(|(name, _)| name.as_str()).collect();
        let expected =
            ["forebay.batch", "forebay.batch.rows", "forebay.epoch", "messaging.destination.partition.id"];
        assert_eq!(named, expected);
        assert!(said.iter().all(|(_, value)| value.parse::<u64>().unwrap() > 0), "{said:?}");
    }
    let batches: Vec<_> =
        calls.iter().map(|call| collector.below(call)[1].attributes()[0].1.clone()).collect();
    assert!(
        batches.windows(2).all(|two| two[0] != two[1]),
        "each waited for a commit of its own: {batches:?}"
    );
    let message = ("messaging.message.id".to_owned(), items[0].item_id.clone());
    let attempt = ("forebay.attempt".to_owned(), "1".to_owned());
    let origin = [TRACE.to_owned(), CALLER.to_owned()];
    let links: Vec<_> = calls.iter().map(ReceivedSpan::links).collect();
    assert_eq!(links, [vec![], vec![(origin, vec![attempt, message])], vec![]]);
}

#[tokio::test]
async fn a_collector_may_want_a_login() {
    let collector = Collector::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "authorization: Bearer hidden\n").unwrap();
    let headers = format!("headers_file = {:?}\n", file.path());
    let wire = Wire::with(&format!("{}{headers}", collector.section(0.0))).await;
    wire.client().enqueue(traced(stored(vec![item("t")]))).await.unwrap();
    collector.calls(1).await;
    assert_eq!(collector.login().as_deref(), Some("Bearer hidden"));
    assert_eq!(wire.logged("hidden"), 0);
}

#[tokio::test]
async fn a_call_without_a_trace_begins_one_by_the_ratio() {
    let collector = Collector::start().await;
    let wire = Wire::with(&collector.section(1.0)).await;
    wire.stored(vec![item("t")]).await;
    wire.json("Enqueue", one("p")).await.message();
    let mut request = Request::new(stored(vec![item("t")]));
    request.metadata_mut().insert("traceparent", parent().replace("-01", "-00").parse().unwrap());
    wire.client().enqueue(request).await.unwrap();
    wire.stored(vec![item("t")]).await;
    // The caller of the third is part of a trace that is not recorded.
    let spans = collector.calls(3).await;
    assert_eq!(spans.len(), 3, "{spans:#?}");
    for seen in &spans {
        let [trace, _, above] = seen.ids();
        assert!(trace != TRACE && above.is_empty(), "{seen:?}");
    }
    assert!(spans.windows(2).all(|two| two[0].ids()[0] != two[1].ids()[0]));
}

#[tokio::test]
async fn a_collector_that_is_gone_costs_spans_and_no_call() {
    let address = format!("127.0.0.1:{}", free_port().unwrap());
    let wire = Wire::with(&format!("\n[traces]\nendpoint = \"http://{address}\"\n")).await;
    let failed = "forebay_spans_dropped_total{cause=\"failed\"}";
    assert!(wire.page("/metrics").await.contains(&format!("{failed} 0")), "it is there from the start");
    let enqueue = async || wire.client().enqueue(traced(stored(vec![item("t")]))).await.unwrap();
    // One after the other, so that more than one request to the collector fails.
    for failures in 1..=3 {
        enqueue().await;
        wire.wait_for_metric(failed, |dropped| dropped == f64::from(failures * SPANS_OF_ONE)).await;
    }
    let (down, up) = ("the collector does not take spans", "the collector takes spans again; 9 spans");
    assert_eq!((wire.logged(down), wire.logged(up)), (1, 0));

    let collector = Collector::at(&address).await;
    enqueue().await;
    assert_eq!(collector.calls(1).await.len(), 1);
    enqueue().await;
    collector.calls(2).await;
    assert_eq!((wire.logged(down), wire.logged(up)), (1, 1));
    assert_eq!(wire.metric(failed).await, f64::from(3 * SPANS_OF_ONE));
}

#[tokio::test]
async fn spans_that_the_collector_refuses_are_counted() {
    let collector = Collector::refusing().await;
    let wire = Wire::with(&collector.section(0.0)).await;
    wire.client().enqueue(traced(stored(vec![item("t")]))).await.unwrap();
    wire.wait_for_metric("forebay_spans_dropped_total{cause=\"refused\"}", |dropped| {
        dropped == f64::from(SPANS_OF_ONE)
    })
    .await;
    assert_eq!(wire.metric("forebay_spans_dropped_total{cause=\"failed\"}").await, 0.0);
}

#[tokio::test]
async fn a_node_that_stops_sends_what_is_left() {
    let collector = Collector::start().await;
    let wire = Wire::with(&collector.section(0.0)).await;
    for _ in 0..20 {
        wire.client().enqueue(traced(stored(vec![item("t")]))).await.unwrap();
    }
    let Wire { node, folder, .. } = wire;
    let (status, _) = node.terminate().await;
    assert!(status.success(), "{status}");
    assert_eq!(collector.calls(20).await.len(), 20);
    drop(folder);
}

#[tokio::test]
async fn a_collector_that_hangs_holds_up_neither_calls_nor_the_stop() {
    // Its connections are accepted by the system, and nobody reads from them.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let wire = Wire::with(&format!("\n[traces]\nendpoint = \"{endpoint}\"\nratio = 1\n")).await;
    let began = Instant::now();
    for _ in 0..100 {
        wire.stored(vec![item("t")]).await;
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    wire.wait_for_metric("forebay_spans_dropped_total{cause=\"failed\"}", |dropped| dropped >= 1.0).await;
    let Wire { node, folder, .. } = wire;
    let (status, took) = node.terminate().await;
    assert!(status.success() && took < Duration::from_secs(10), "{status} {took:?}");
    drop(folder);
}
