//! PauseTopic and ResumeTopic

use std::time::Duration;

use forebay_proto::v1::{
    DequeueRequest, GetTopicRequest, Pause, PauseTopicRequest, ResumeTopicRequest, Side, TopicDemand,
    admin_service_client::AdminServiceClient, topic_demand::Selector,
};
use forebay_types::{Clock, SystemClock};
use tokio::time::Instant;
use tonic::{Code, Status, transport::Channel};

use super::{NAMESPACE, RefusalDetails, Wire, item, seconds};

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

fn request(topic: &str, side: Side) -> PauseTopicRequest {
    let (namespace, topic) = (NAMESPACE.to_owned(), topic.to_owned());
    PauseTopicRequest { namespace, topic, sides: vec![side.into()], ..Default::default() }
}

async fn pause(wire: &Wire, request: PauseTopicRequest) -> Result<Vec<Pause>, Status> {
    Ok(admin(wire).pause_topic(request).await?.into_inner().pauses)
}

async fn resume(wire: &Wire, topic: &str, sides: &[Side]) -> Vec<Pause> {
    let sides = sides.iter().map(|side| (*side).into()).collect();
    let request =
        ResumeTopicRequest { namespace: NAMESPACE.into(), topic: topic.into(), sides, ..Default::default() };
    admin(wire).resume_topic(request).await.unwrap().into_inner().pauses
}

fn poll(topic: &str, wait: i64) -> DequeueRequest {
    let demands = vec![TopicDemand { selector: Some(Selector::Topic(topic.to_owned())), max_items: 1 }];
    DequeueRequest { namespace: NAMESPACE.into(), demands, wait: Some(seconds(wait)), ..Default::default() }
}

#[tokio::test]
async fn each_wrong_value_is_named() {
    let wire = Wire::start().await;
    let refused = async |request| RefusalDetails::call(pause(&wire, request).await);
    let good = || request("t", Side::Dequeue);
    refused(PauseTopicRequest { namespace: String::new(), ..good() }).await.invalid("namespace");
    refused(PauseTopicRequest { topic: "a b".into(), ..good() }).await.invalid("topic");
    refused(PauseTopicRequest { sides: vec![], ..good() }).await.invalid("sides");
    refused(PauseTopicRequest { sides: vec![1, 0], ..good() }).await.invalid("sides[1]");
    refused(PauseTopicRequest { sides: vec![7], ..good() }).await.invalid("sides[0]");
    let past = Some(prost_types::Timestamp { seconds: 1, nanos: 0 });
    refused(PauseTopicRequest { until: past, ..good() }).await.invalid("until");
    let far = Some(prost_types::Timestamp { seconds: 100_000_000_000, nanos: 0 });
    refused(PauseTopicRequest { until: far, ..good() }).await.invalid("until");
    let long = pause(&wire, PauseTopicRequest { note: "n".repeat(1_025), ..good() }).await.unwrap();
    assert_eq!(long[0].note, "n".repeat(1_021) + "…");
}

#[tokio::test]
async fn a_pause_is_felt_at_once_shown_and_ended() {
    let wire = Wire::start().await;
    wire.stored(vec![item("t")]).await;
    let note = "the database moves".to_owned();
    let pauses = pause(&wire, PauseTopicRequest { note, ..request("t", Side::Dequeue) }).await.unwrap();
    assert_eq!((pauses.len(), pauses[0].side(), pauses[0].of_namespace), (1, Side::Dequeue, false));
    assert!(wire.client().dequeue(poll("t", 0)).await.unwrap().into_inner().items.is_empty());

    let pauses = pause(&wire, request("t", Side::Enqueue)).await.unwrap();
    assert_eq!(pauses.iter().map(Pause::side).collect::<Vec<_>>(), [Side::Enqueue, Side::Dequeue]);
    let results = wire.enqueue(vec![item("t"), item("u")]).await.unwrap();
    assert_eq!((results[0].reason.as_str(), results[1].reason.as_str()), ("TOPIC_PAUSED", ""));
    assert_eq!(results[0].error.as_ref().unwrap().code, Code::FailedPrecondition as i32);

    pause(&wire, request("", Side::Dequeue)).await.unwrap();
    let shown = GetTopicRequest { namespace: NAMESPACE.into(), topic: "t".into() };
    let topic = admin(&wire).get_topic(shown).await.unwrap().into_inner().topic.unwrap();
    let shown: Vec<_> =
        topic.pauses.iter().map(|it| (it.side(), it.of_namespace, it.note.as_str())).collect();
    assert_eq!(
        shown,
        [(Side::Enqueue, false, ""), (Side::Dequeue, false, "the database moves"), (Side::Dequeue, true, "")]
    );

    let mut client = wire.client();
    let waiting = tokio::spawn(async move { client.dequeue(poll("t", 15)).await });
    assert_eq!(resume(&wire, "t", &[Side::Enqueue, Side::Dequeue]).await, []);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "the namespace is paused");
    assert_eq!(resume(&wire, "", &[Side::Dequeue]).await, []);
    assert_eq!(waiting.await.unwrap().unwrap().into_inner().items.len(), 1);
    wire.stored(vec![item("t")]).await;
}

#[tokio::test]
async fn a_pause_that_is_only_tried_changes_nothing() {
    let wire = Wire::start().await;
    let tried = PauseTopicRequest { dry_run: true, ..request("t", Side::Dequeue) };
    assert_eq!(pause(&wire, tried).await.unwrap().len(), 1, "what there would be");
    wire.stored(vec![item("t"), item("t")]).await;
    assert_eq!(wire.client().dequeue(poll("t", 0)).await.unwrap().into_inner().items.len(), 1);
    pause(&wire, request("t", Side::Dequeue)).await.unwrap();
    let tried = ResumeTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "t".into(),
        sides: vec![Side::Dequeue.into()],
        dry_run: true,
        reason: "r".into(),
    };
    assert_eq!(admin(&wire).resume_topic(tried.clone()).await.unwrap().into_inner().pauses, []);
    assert!(wire.client().dequeue(poll("t", 0)).await.unwrap().into_inner().items.is_empty());
    let long = ResumeTopicRequest { reason: "r".repeat(1_025), ..tried };
    admin(&wire).resume_topic(long).await.unwrap();
}

/// Also of a topic without items, which is nowhere else.
#[tokio::test]
async fn a_pause_ends_by_itself() {
    let wire = Wire::start().await;
    let begun = Instant::now();
    let end = SystemClock::default().wall().plus(Duration::from_secs(3)).as_micros();
    let nanos = i32::try_from(end % 1_000_000).unwrap() * 1_000;
    let until = Some(prost_types::Timestamp { seconds: end / 1_000_000, nanos });
    pause(&wire, PauseTopicRequest { until, ..request("t", Side::Dequeue) }).await.unwrap();
    let shown = GetTopicRequest { namespace: NAMESPACE.into(), topic: "t".into() };
    let topic = admin(&wire).get_topic(shown.clone()).await.unwrap().into_inner().topic.unwrap();
    assert_eq!((topic.pauses.len(), topic.ready_count), (1, 0));
    wire.stored(vec![item("t")]).await;
    let answer = wire.client().dequeue(poll("t", 15)).await.unwrap().into_inner();
    assert_eq!(answer.items.len(), 1);
    assert!(begun.elapsed() > Duration::from_millis(2_900), "{:?}", begun.elapsed());
    let topic = admin(&wire).get_topic(shown).await.unwrap().into_inner().topic.unwrap();
    assert_eq!(topic.pauses, []);
}
