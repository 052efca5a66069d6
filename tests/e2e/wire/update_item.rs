//! UpdateItem.

use forebay_proto::v1::{
    EnqueueItem, GetItemRequest, Item, ItemState, ItemView, Nack, UpdateItemRequest,
    admin_service_client::AdminServiceClient, enqueue_item, update_item_request::Schedule,
};
use tonic::{Code, Status};

use super::{NAMESPACE, RefusalDetails, Wire, item, micros, seconds};

fn request(id: &str) -> UpdateItemRequest {
    UpdateItemRequest { namespace: NAMESPACE.into(), item_id: id.to_owned(), ..Default::default() }
}

fn with_priority(id: &str, priority: i32) -> UpdateItemRequest {
    UpdateItemRequest { priority: Some(priority), ..request(id) }
}

async fn update(wire: &Wire, request: UpdateItemRequest) -> Result<ItemState, Status> {
    let answer = AdminServiceClient::new(wire.node.channel()).update_item(request).await?;
    Ok(answer.into_inner().state())
}

async fn look(wire: &Wire, id: &str) -> Item {
    let (namespace, item_id) = (NAMESPACE.to_owned(), id.to_owned());
    let request = GetItemRequest { namespace, item_id, view: ItemView::Full.into(), ..Default::default() };
    let answer = AdminServiceClient::new(wire.node.channel()).get_item(request).await.unwrap();
    answer.into_inner().item.unwrap()
}

#[tokio::test]
async fn an_item_gets_what_is_given_and_keeps_the_rest() {
    let wire = Wire::start().await;
    let first = EnqueueItem { metadata: "old".into(), ttl: Some(seconds(3_600)), ..item("t") };
    let ids = wire.stored(vec![first.clone(), first]).await;
    let before = look(&wire, &ids[1]).await;
    let dry = UpdateItemRequest { dry_run: true, ..with_priority(&ids[1], -3) };
    assert_eq!(update(&wire, dry).await.unwrap(), ItemState::Ready);
    assert_eq!(look(&wire, &ids[1]).await, before, "nothing has changed");
    assert_eq!(update(&wire, with_priority(&ids[1], -3)).await.unwrap(), ItemState::Ready);
    assert_eq!(look(&wire, &ids[1]).await, Item { priority: -3, ..before.clone() });

    let metadata = UpdateItemRequest { metadata: Some("new".into()), ..request(&ids[1]) };
    assert_eq!(update(&wire, metadata).await.unwrap(), ItemState::Ready);
    let ttl = UpdateItemRequest { ttl: Some(seconds(7_200)), ..request(&ids[1]) };
    assert_eq!(update(&wire, ttl).await.unwrap(), ItemState::Ready);
    let now = look(&wire, &ids[1]).await;
    let longer = micros(&now.expires_at) - micros(&before.expires_at);
    assert!(longer >= 3_600_000_000, "{longer}");
    assert_eq!((now.priority, &now.metadata[..]), (-3, &b"new"[..]));
    // The later one is the first by now.
    let taken = wire.take("t", 2).await;
    assert_eq!(taken.iter().map(|it| &*it.item_id).collect::<Vec<_>>(), [&*ids[1], &*ids[0]]);
    assert_eq!((taken[0].priority, &taken[0].metadata[..]), (-3, &b"new"[..]));
    wire.wait_for_metric("forebay_updated_total", |count| count == 3.0).await;
}

#[tokio::test]
async fn an_item_is_put_off_and_brought_forward() {
    let wire = Wire::start().await;
    let ids = wire.stored(vec![item("t")]).await;
    let at = |schedule| UpdateItemRequest { schedule: Some(schedule), ..request(&ids[0]) };
    let later = Schedule::Delay(seconds(3_600));
    assert_eq!(update(&wire, at(later)).await.unwrap(), ItemState::Scheduled);
    assert!(wire.is_empty("t").await);
    let due = look(&wire, &ids[0]).await.ready_at;
    let earlier = prost_types::Timestamp { seconds: due.unwrap().seconds - 60, nanos: 0 };
    assert_eq!(update(&wire, at(Schedule::DeliverAfter(earlier))).await.unwrap(), ItemState::Scheduled);
    assert_eq!(look(&wire, &ids[0]).await.ready_at, Some(earlier));
    assert_eq!(update(&wire, at(Schedule::Delay(seconds(0)))).await.unwrap(), ItemState::Ready);
    assert_eq!(wire.take_one("t").await.item_id, ids[0]);
}

/// A long poll that waits gets an item that an update makes ready.
#[tokio::test]
async fn a_poll_that_waits_gets_an_item_that_is_brought_forward() {
    let wire = Wire::start().await;
    let later = enqueue_item::Schedule::Delay(seconds(3_600));
    let ids = wire.stored(vec![EnqueueItem { schedule: Some(later), ..item("t") }]).await;
    let poll = async {
        let request = forebay_proto::v1::DequeueRequest { wait: Some(seconds(15)), ..super::asked("t", 1) };
        wire.client().dequeue(request).await.unwrap().into_inner().items
    };
    let forward = async {
        wire.wait_for_polls(1).await;
        let now = Some(Schedule::Delay(seconds(0)));
        update(&wire, UpdateItemRequest { schedule: now, ..request(&ids[0]) }).await.unwrap()
    };
    let (items, state) = tokio::join!(poll, forward);
    assert_eq!((&items[0].item_id, state), (&ids[0], ItemState::Ready));
}

#[tokio::test]
async fn what_does_not_wait_is_refused() {
    let wire = Wire::start().await;
    let ids = wire.stored(vec![item("leased"), item("dead")]).await;
    wire.take_one("leased").await;
    let dies = wire.take_one("dead").await;
    assert_eq!(
        wire.nack(Nack { receipt: dies.receipt, dead_letter: true, ..Default::default() }).await,
        None
    );
    for (id, reason) in [(&ids[0], "ITEM_LEASED"), (&ids[1], "ITEM_DEAD")] {
        RefusalDetails::call(update(&wire, with_priority(id, 1)).await).is(
            Code::FailedPrecondition,
            reason,
            None,
        );
    }
    let ready = wire.stored(vec![item("t")]).await.remove(0);
    let foreign = UpdateItemRequest { namespace: "other".into(), ..with_priority(&ready, 1) };
    RefusalDetails::call(update(&wire, foreign).await).is(Code::NotFound, "ITEM_NOT_FOUND", None);
    RefusalDetails::call(update(&wire, with_priority("77-1", 1)).await).is(
        Code::NotFound,
        "ITEM_NOT_FOUND",
        None,
    );
    assert_eq!(look(&wire, &ready).await.priority, 0);
}

#[tokio::test]
async fn a_wrong_value_is_named_and_an_item_is_due_before_it_expires() {
    let wire = Wire::start().await;
    let id = wire.stored(vec![EnqueueItem { ttl: Some(seconds(60)), ..item("t") }]).await.remove(0);
    let wrong = UpdateItemRequest { item_id: "seven".into(), ..with_priority(&id, 1) };
    RefusalDetails::call(update(&wire, wrong).await).invalid("item_id");
    RefusalDetails::call(update(&wire, request(&id)).await).invalid("priority");
    let nowhere = UpdateItemRequest { namespace: String::new(), ..with_priority(&id, 1) };
    RefusalDetails::call(update(&wire, nowhere).await).invalid("namespace");
    let long = UpdateItemRequest { reason: "r".repeat(1_025), ..with_priority(&id, 1) };
    update(&wire, long).await.unwrap();
    let large = UpdateItemRequest { metadata: Some(vec![7; 4_097].into()), ..request(&id) };
    RefusalDetails::call(update(&wire, large).await).too_large("metadata");
    let late = UpdateItemRequest { schedule: Some(Schedule::Delay(seconds(61))), ..request(&id) };
    RefusalDetails::call(update(&wire, late.clone()).await).invalid("delay");
    let both = UpdateItemRequest { ttl: Some(seconds(120)), ..late };
    assert_eq!(update(&wire, both).await.unwrap(), ItemState::Scheduled);
    let brief = UpdateItemRequest { ttl: Some(seconds(30)), ..request(&id) };
    RefusalDetails::call(update(&wire, brief).await).invalid("ttl");
}
