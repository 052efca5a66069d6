//! Answers to KEDA: values, rights, and the stream.

use std::{collections::HashMap, time::Duration};

use forebay_access::Record;
use forebay_proto::{
    externalscaler::{
        GetMetricsRequest, IsActiveResponse, MetricSpec, MetricValue, ScaledObjectRef,
        external_scaler_client::ExternalScalerClient,
    },
    v1::{
        EnqueueItem, PauseTopicRequest, Side, admin_service_client::AdminServiceClient,
        enqueue_item::Schedule,
    },
};
use tokio::time::{Instant, timeout};
use tonic::{Code, Request, Status, Streaming, transport::Channel};
use tonic_types::StatusExt as _;

use super::{
    NAMESPACE, Refused, Wire,
    access::{Guarded, OWN, bearer},
    item, raw, seconds,
};
use crate::kept_tokens::{file, record, token};

/// A stream looks once a second. The rest is for a machine with other things to do.
const AT_MOST: Duration = Duration::from_secs(12);

type Client = ExternalScalerClient<Channel>;

/// A trigger, as KEDA sends it: with the keys that are for KEDA, and beside the namespace of Kubernetes.
fn trigger(pairs: &[(&str, &str)]) -> ScaledObjectRef {
    let pairs = [("scalerAddress", "queue:7420"), ("enableTLS", "true")].iter().chain(pairs);
    let scaler_metadata = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ScaledObjectRef { name: "mailer".into(), namespace: "kubernetes".into(), scaler_metadata }
}

/// A trigger of the topic of most tests.
fn of_topic(pairs: &[(&str, &str)]) -> ScaledObjectRef {
    trigger(&[&[("namespace", NAMESPACE), ("topic", "t")], pairs].concat())
}

async fn is_active(client: &mut Client, scaled: &ScaledObjectRef) -> Result<bool, Status> {
    client.is_active(scaled.clone()).await.map(|answer| answer.into_inner().result)
}

async fn metrics(client: &mut Client, scaled: &ScaledObjectRef, name: &str) -> Result<MetricValue, Status> {
    let request = GetMetricsRequest { scaled_object_ref: Some(scaled.clone()), metric_name: name.into() };
    let mut values = client.get_metrics(request).await?.into_inner().metric_values;
    assert_eq!((values.len(), &*values[0].metric_name), (1, name));
    Ok(values.remove(0))
}

/// The backlog, and whether there is something to do.
async fn backlog(client: &mut Client, scaled: &ScaledObjectRef) -> (i64, bool) {
    let value = metrics(client, scaled, "forebay-backlog").await.unwrap();
    assert_eq!(value.metric_value_float, value.metric_value as f64);
    (value.metric_value, is_active(client, scaled).await.unwrap())
}

#[tokio::test]
async fn values_follow_items() {
    let wire = Wire::start().await;
    let client = &mut Client::new(wire.node.channel());
    let scaled = of_topic(&[]);
    wire.stored(vec![item("t.more")]).await;
    assert_eq!(
        backlog(client, &scaled).await,
        (0, false),
        "a topic that is not there, but one that begins so"
    );
    let later = EnqueueItem { schedule: Some(Schedule::Delay(seconds(600))), ..item("t") };
    wire.stored(vec![item("t"), item("t"), item("t"), item("u"), later]).await;
    assert_eq!(backlog(client, &scaled).await, (3, true));
    let taken = wire.take("t", 2).await;
    assert!(!taken.is_empty());
    // Items that a consumer works on count.
    assert_eq!(backlog(client, &scaled).await, (3, true));
    let with_scheduled = of_topic(&[("count", "ready,leased,scheduled"), ("activation", "4")]);
    assert_eq!(backlog(client, &with_scheduled).await, (4, false));
    let both = trigger(&[("namespace", NAMESPACE), ("topics", "t, u,none")]);
    assert_eq!(backlog(client, &both).await, (4, true));
    for delivery in &taken {
        assert_eq!(wire.ack(&delivery.receipt).await, None);
    }
    assert_eq!(backlog(client, &scaled).await.0, 3 - taken.len() as i64);

    let aged = of_topic(&[("metric", "both"), ("targetBacklog", "2.5"), ("targetOldestAge", "0.5")]);
    let age = metrics(client, &aged, "forebay-oldest-age").await.unwrap();
    assert!(age.metric_value_float > 0.0 && age.metric_value == age.metric_value_float.ceil() as i64);
    assert!(is_active(client, &aged).await.unwrap());
    let specs = client.get_metric_spec(aged).await.unwrap().into_inner().metric_specs;
    let spec = |metric_name: &str, target_size, target_size_float| MetricSpec {
        metric_name: metric_name.into(),
        target_size,
        target_size_float,
    };
    assert_eq!(specs, [spec("forebay-backlog", 3, 2.5), spec("forebay-oldest-age", 1, 0.5)]);
    let specs = client.get_metric_spec(scaled).await.unwrap().into_inner().metric_specs;
    assert_eq!(specs, [spec("forebay-backlog", 100, 100.0)]);
}

/// Replicas are there in time for what is due soon.
#[tokio::test]
async fn what_is_due_soon_counts_as_ready() {
    let wire = Wire::start().await;
    let client = &mut Client::new(wire.node.channel());
    let after = |delay| EnqueueItem { schedule: Some(Schedule::Delay(seconds(delay))), ..item("t") };
    let mut items = vec![after(600); 1_100];
    items.extend([after(7_200), item("t")]);
    for part in items.chunks(600) {
        wire.stored(part.to_vec()).await;
    }
    let soon = |span: &'static str, activation: &'static str| {
        of_topic(&[("scheduledLookahead", span), ("activation", activation)])
    };
    assert_eq!(backlog(client, &soon("0s", "0")).await, (1, true));
    assert_eq!(backlog(client, &soon("5m", "1")).await, (1, false));
    assert_eq!(backlog(client, &soon("15m", "1")).await, (1_101, true));
    assert_eq!(backlog(client, &soon("15m", "1101")).await, (1_101, false));
    assert_eq!(backlog(client, &soon("3h", "1101")).await, (1_102, true));
}

#[tokio::test]
async fn a_topic_that_is_paused_asks_for_nobody() {
    let wire = Wire::start().await;
    let client = &mut Client::new(wire.node.channel());
    wire.stored(vec![item("t"), item("t")]).await;
    let taken = wire.take_one("t").await;
    for side in [Side::Enqueue, Side::Dequeue] {
        let (namespace, topic) = (NAMESPACE.to_owned(), "t".to_owned());
        let pause = PauseTopicRequest { namespace, topic, sides: vec![side.into()], ..Default::default() };
        AdminServiceClient::new(wire.node.channel()).pause_topic(pause).await.unwrap();
        // A consumer that works on an item from before is let finish.
        let expected = if side == Side::Enqueue { 2 } else { 1 };
        assert_eq!(backlog(client, &of_topic(&[])).await, (expected, true), "{side:?}");
    }
    assert_eq!(wire.ack(&taken.receipt).await, None);
    assert_eq!(backlog(client, &of_topic(&[])).await, (0, false));
}

#[tokio::test]
async fn what_is_wrong_with_a_trigger_is_named() {
    let wire = Wire::start().await;
    let client = &mut Client::new(wire.node.channel());
    for (key, value) in
        [("targetBaclog", "5"), ("scheduledLookahead", "soon"), ("targetBacklog", "many"), ("count", "dead")]
    {
        let scaled = of_topic(&[(key, value)]);
        Refused::call(is_active(client, &scaled).await).invalid(key);
        Refused::call(client.get_metric_spec(scaled.clone()).await).invalid(key);
        Refused::call(client.stream_is_active(scaled.clone()).await).invalid(key);
        Refused::call(metrics(client, &scaled, "forebay-backlog").await).invalid(key);
    }
    Refused::call(metrics(client, &of_topic(&[]), "forebay-oldest-age").await).invalid("metricName");
    Refused::call(is_active(client, &trigger(&[("topic", "t")])).await).invalid("namespace");
    let empty = GetMetricsRequest::default();
    Refused::call(client.get_metrics(empty).await).invalid("namespace");
    let large = of_topic(&[("topics", &"x".repeat(80 << 10))]);
    let status = client.is_active(large.clone()).await.unwrap_err();
    assert_eq!(status.get_details_error_info().unwrap().reason, "TOO_LARGE");
    assert!(client.stream_is_active(large).await.is_err());
    // A later release of KEDA asks for it, and does without.
    let path = "/externalscaler.ExternalScaler/StreamMetricSpec";
    let refused = raw::send_to(wire.node.channel(), path, Request::new(Default::default())).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unimplemented);
}

/// A shard that can't be asked must not look like one without items.
#[tokio::test]
async fn a_shard_that_can_not_be_asked_is_no_smaller_number() {
    let away = "\n[[shard]]\nid = 3\nurl = \"mysql://nobody@127.0.0.1:1/none\"\n";
    let wire = Wire::with_unmigrated(away).await;
    let client = &mut Client::new(wire.node.channel());
    let refused = Refused::call(metrics(client, &of_topic(&[]), "forebay-backlog").await);
    refused.is(Code::Unavailable, "SHARD_UNAVAILABLE", None);
    let refused = Refused::call(is_active(client, &of_topic(&[])).await);
    refused.is(Code::Unavailable, "SHARD_UNAVAILABLE", None);
}

/// Returns the answer to each question, as reason and right.
async fn told(client: &mut Client, scaled: &ScaledObjectRef, shown: Option<&str>) -> String {
    fn asked<T>(message: T, shown: Option<&str>) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(shown) = shown {
            request.metadata_mut().insert("authorization", shown.parse().unwrap());
        }
        request
    }
    let value =
        GetMetricsRequest { scaled_object_ref: Some(scaled.clone()), metric_name: "forebay-backlog".into() };
    let outcomes = [
        client.is_active(asked(scaled.clone(), shown)).await.err(),
        client.get_metric_spec(asked(scaled.clone(), shown)).await.err(),
        client.get_metrics(asked(value, shown)).await.err(),
        client.stream_is_active(asked(scaled.clone(), shown)).await.err(),
    ];
    let words = outcomes.map(|failed| {
        failed.map_or_else(String::new, |status| {
            let info = status.get_details_error_info().unwrap();
            let scope = info.metadata.get("scope").cloned().unwrap_or_default();
            format!("{} {scope}", info.reason).trim().to_owned()
        })
    });
    assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
    words[0].clone()
}

#[tokio::test]
async fn the_token_is_that_of_the_header_or_of_the_metadata() {
    let [own, foreign, blind, unknown] = [1, 2, 3, 4].map(token);
    let kept = [
        record(&own, &["own:observe"]),
        record(&foreign, &["other:all", "kubernetes:all"]),
        record(&blind, &["own:produce,consume,inspect,operate,admin"]),
    ];
    let guarded = Guarded::start(&file(&kept)).await;
    let client = &mut Client::new(guarded.node.channel());
    let named = [("namespace", OWN), ("topic", "t")];
    let plain = trigger(&named);
    let missing = "SCOPE_MISSING observe";
    for (of, expected) in
        [(&own, ""), (&foreign, "WRONG_NAMESPACE"), (&blind, missing), (&unknown, "BAD_CREDENTIALS")]
    {
        let (text, header) = (of.reveal(), bearer(of));
        assert_eq!(told(client, &plain, Some(&header)).await, expected);
        for key in ["token", "tokenFromEnv"] {
            let with_token = trigger(&[&named[..], &[(key, &*text)]].concat());
            assert_eq!(told(client, &with_token, None).await, expected, "{key}");
            // That of the header counts.
            assert_eq!(told(client, &with_token, Some(&bearer(&own))).await, "");
            assert_eq!(told(client, &with_token, Some("Bearer x")).await, "BAD_CREDENTIALS");
        }
    }
    assert_eq!(told(client, &plain, None).await, "NO_CREDENTIALS");
    let malformed = trigger(&[&named[..], &[("token", "")]].concat());
    assert_eq!(told(client, &malformed, None).await, "BAD_CREDENTIALS");
    // Mistakes in a trigger are told only to callers that may ask for it.
    let wrong = trigger(&[&named[..], &[("what", "1")]].concat());
    assert_eq!(told(client, &wrong, None).await, "NO_CREDENTIALS");
    assert_eq!(told(client, &wrong, Some(&bearer(&foreign))).await, "WRONG_NAMESPACE");
    assert_eq!(told(client, &wrong, Some(&bearer(&own))).await, "INVALID_FIELD");
    let log = std::fs::read_to_string(guarded.folder.path().join("log")).unwrap();
    assert!(log.contains("credentials at the grpc port are not accepted"), "{log}");
    assert!([&own, &foreign, &blind, &unknown].iter().all(|of| !log.contains(&of.reveal())));
}

async fn next(stream: &mut Streaming<IsActiveResponse>) -> bool {
    timeout(AT_MOST, stream.message()).await.expect("in time").unwrap().expect("it goes on").result
}

#[tokio::test]
async fn a_stream_tells_each_change() {
    let wire = Wire::start().await;
    let client = &mut Client::new(wire.node.channel());
    let mut stream = client.stream_is_active(of_topic(&[])).await.unwrap().into_inner();
    assert!(!next(&mut stream).await);
    assert!(timeout(Duration::from_millis(2_500), stream.message()).await.is_err(), "nothing has changed");
    wire.stored(vec![item("t")]).await;
    assert!(next(&mut stream).await);
    let taken = wire.take_one("t").await;
    assert_eq!(wire.ack(&taken.receipt).await, None);
    assert!(!next(&mut stream).await);
}

#[tokio::test]
async fn streams_are_bounded() {
    let wire = Wire::start().await;
    let mut streams = Vec::new();
    let refused = loop {
        // A connection for each: of one connection fewer may be open.
        let mut client = Client::connect(format!("http://{}", wire.node.grpc)).await.unwrap();
        match client.stream_is_active(of_topic(&[])).await {
            Ok(stream) => streams.push(stream),
            Err(refused) => break refused,
        }
        assert!(streams.len() <= 64);
    };
    assert_eq!(streams.len(), 64);
    Refused::call::<()>(Err(refused)).is(Code::ResourceExhausted, "OVERLOADED", None);
    // A place is free again once its client is gone.
    streams.clear();
    let client = &mut Client::new(wire.node.channel());
    let begun = Instant::now();
    while client.stream_is_active(of_topic(&[])).await.is_err() {
        assert!(begun.elapsed() < AT_MOST);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let own = token(1);
    let kept = record(&own, &["own:observe"]);
    let guarded = Guarded::start(&file(std::slice::from_ref(&kept))).await;
    let client = &mut Client::new(guarded.node.channel());
    let text = own.reveal();
    let changes: HashMap<&str, Record> = HashMap::from([
        ("BAD_CREDENTIALS", Record { revoked: true, ..kept.clone() }),
        ("SCOPE_MISSING", Record { grants: vec!["own:produce".parse().unwrap()], ..kept.clone() }),
    ]);
    let scaled = trigger(&[("namespace", OWN), ("topic", "t"), ("tokenFromEnv", &text)]);
    for (expected, changed) in changes {
        let begun = Instant::now();
        let mut stream = loop {
            match client.stream_is_active(scaled.clone()).await {
                Ok(stream) => break stream.into_inner(),
                // The node does not have the token of before yet.
                Err(_) => assert!(begun.elapsed() < AT_MOST),
            }
        };
        assert!(!next(&mut stream).await);
        guarded.replace_tokens(&file(&[changed]));
        let ended = timeout(AT_MOST, stream.message()).await.expect("it ends").unwrap_err();
        assert_eq!(ended.get_details_error_info().unwrap().reason, expected);
        guarded.replace_tokens(&file(std::slice::from_ref(&kept)));
    }
}
