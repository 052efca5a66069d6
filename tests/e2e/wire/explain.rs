//! ExplainTopic and ExplainItem: each code, made real.

use std::time::Duration;

use forebay_proto::v1::{
    Blocker, BlockerCode, EnqueueItem, ExplainItemRequest, ExplainItemResponse, ExplainTopicRequest,
    ExplainTopicResponse, Nack, admin_service_client::AdminServiceClient, enqueue_item::Schedule,
};

use super::{NAMESPACE, RefusalDetails, Wire, item, micros, seconds};

async fn topic(wire: &Wire, topic: &str) -> ExplainTopicResponse {
    let request = ExplainTopicRequest { namespace: NAMESPACE.into(), topic: topic.into() };
    AdminServiceClient::new(wire.node.channel()).explain_topic(request).await.unwrap().into_inner()
}

async fn of_item(wire: &Wire, id: &str) -> ExplainItemResponse {
    let request = ExplainItemRequest { namespace: NAMESPACE.into(), item_id: id.into() };
    AdminServiceClient::new(wire.node.channel()).explain_item(request).await.unwrap().into_inner()
}

/// The only blocker.
#[track_caller]
fn only(mut blockers: Vec<Blocker>, code: BlockerCode) -> Blocker {
    assert_eq!((blockers.len(), blockers[0].code()), (1, code), "{blockers:?}");
    blockers.remove(0)
}

fn codes(blockers: &[Blocker]) -> Vec<BlockerCode> {
    blockers.iter().map(Blocker::code).collect()
}

#[tokio::test]
async fn a_topic_is_explained_from_empty_to_delivered() {
    let wire = Wire::start().await;
    only(topic(&wire, "t").await.blockers, BlockerCode::NothingReady);

    let later = EnqueueItem { schedule: Some(Schedule::Delay(seconds(3_600))), ..item("t") };
    let later = wire.stored(vec![later]).await.remove(0);
    let found = only(topic(&wire, "t").await.blockers, BlockerCode::Scheduled);
    assert!(found.until.is_some() && found.count == Some(1), "{found:?}");
    let found = only(of_item(&wire, &later).await.blockers, BlockerCode::Scheduled);
    assert!(found.until.is_some() && found.sentence.starts_with("It is due at 2"), "{found:?}");

    let ids = wire.stored(vec![EnqueueItem { shard: Some(1), ..item("t") }; 3]).await;
    let found = only(topic(&wire, "t").await.blockers, BlockerCode::NoConsumer);
    assert_eq!(found.count, Some(3), "{found:?}");
    let of_last = of_item(&wire, &ids[2]).await;
    assert_eq!(
        (codes(&of_last.blockers), &*of_last.topic),
        (vec![BlockerCode::NoConsumer, BlockerCode::Behind], "t")
    );
    assert_eq!(of_last.blockers[1].count, Some(2));

    let taken = wire.take_one("t").await;
    let found = only(topic(&wire, "t").await.blockers, BlockerCode::Deliverable);
    assert_eq!(found.count, Some(2), "{found:?}");
    only(of_item(&wire, &ids[1]).await.blockers, BlockerCode::Deliverable);
    let found = only(of_item(&wire, &ids[2]).await.blockers, BlockerCode::Behind);
    assert_eq!(found.count, Some(1), "what is leased does not come before it");
    let found = only(of_item(&wire, &ids[0]).await.blockers, BlockerCode::Leased);
    assert_eq!(micros(&found.until), micros(&taken.lease_expires_at));
    assert_eq!(wire.take("t", 9).await.len(), 2);
    let found = topic(&wire, "t").await.blockers;
    assert_eq!(codes(&found), [BlockerCode::Leased, BlockerCode::Scheduled]);
    assert_eq!((found[0].count, micros(&found[0].until)), (Some(3), micros(&taken.lease_expires_at)));
}

#[tokio::test]
async fn dead_and_missing_items_are_explained() {
    let wire = Wire::start().await;
    let id = wire.stored(vec![item("t")]).await.remove(0);
    let receipt = wire.take_one("t").await.receipt;
    let nack = Nack { receipt, dead_letter: true, reason: "no such user".into(), ..Default::default() };
    assert_eq!(wire.nack(nack).await, None);
    let found = only(of_item(&wire, &id).await.blockers, BlockerCode::Dead);
    assert!(found.since.is_some() && found.until.is_some());
    assert!(found.sentence.contains("The last nack said: no such user."), "{}", found.sentence);
    assert_eq!(codes(&topic(&wire, "t").await.blockers), [BlockerCode::NothingReady, BlockerCode::Dead]);

    for gone in ["1-999999", "77-1"] {
        let answer = of_item(&wire, gone).await;
        only(answer.blockers, BlockerCode::Gone);
        assert!(answer.topic.is_empty());
    }
    // As if it had never been there.
    let request = ExplainItemRequest { namespace: "other".into(), item_id: id };
    let foreign = AdminServiceClient::new(wire.node.channel()).explain_item(request).await.unwrap();
    only(foreign.into_inner().blockers, BlockerCode::Gone);
    let request = ExplainItemRequest { namespace: NAMESPACE.into(), item_id: "seven".into() };
    let refused = AdminServiceClient::new(wire.node.channel()).explain_item(request).await;
    RefusalDetails::call(refused).invalid("item_id");
}

#[tokio::test]
async fn a_limit_on_leases_and_a_shard_without_an_owner_are_named() {
    let wire = Wire::with("[limits]\nleased_per_topic = 2\n").await;
    wire.stored(vec![EnqueueItem { shard: Some(1), ..item("t") }; 3]).await;
    wire.take("t", 2).await;
    let found = only(topic(&wire, "t").await.blockers, BlockerCode::TooManyLeased);
    assert!(found.sentence.contains("2 items of the topic are leased in shard 1"), "{}", found.sentence);
    assert_eq!((found.shard, found.count), (Some(1), Some(2)));

    let away = "\n[[shard]]\nid = 3\nurl = \"mysql://nobody@127.0.0.1:1/none\"\n";
    let wire = Wire::with_unmigrated(away).await;
    let answer = topic(&wire, "t").await;
    assert_eq!(answer.incomplete_shards, [3]);
    assert_eq!(codes(&answer.blockers), [BlockerCode::ShardUnserved, BlockerCode::NothingReady]);
    assert_eq!(answer.blockers[0].shard, Some(3));
    only(of_item(&wire, "3-1").await.blockers, BlockerCode::ShardUnserved);
}

#[tokio::test]
async fn a_poll_that_waits_is_a_consumer() {
    let wire = Wire::start().await;
    let mut client = wire.client();
    let request = forebay_proto::v1::DequeueRequest { wait: Some(seconds(20)), ..super::asked("other", 1) };
    let poll = tokio::spawn(async move { client.dequeue(request).await });
    wire.wait_for_polls(1).await;
    wire.stored(vec![item("t")]).await;
    only(topic(&wire, "t").await.blockers, BlockerCode::NoConsumer);
    wire.stored(vec![item("other")]).await;
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(20), poll)
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .into_inner()
            .items
            .len(),
        1
    );
    let found = topic(&wire, "other").await.blockers;
    assert_eq!(codes(&found), [BlockerCode::Leased]);
}
