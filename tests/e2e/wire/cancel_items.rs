//! CancelItems.

use forebay_proto::v1::{
    CancelItemResult, CancelItemsRequest, EnqueueItem, ItemState, Nack,
    admin_service_client::AdminServiceClient, enqueue_item::Schedule,
};
use tonic::{Code, Status};

use super::{NAMESPACE, RefusalDetails, Wire, beside, item, seconds};

fn request(ids: &[&str]) -> CancelItemsRequest {
    let item_ids = ids.iter().map(|id| (*id).to_owned()).collect();
    CancelItemsRequest { namespace: NAMESPACE.into(), item_ids, ..Default::default() }
}

async fn cancel(wire: &Wire, request: CancelItemsRequest) -> Result<Vec<CancelItemResult>, Status> {
    let ids = request.item_ids.clone();
    let results = AdminServiceClient::new(wire.node.channel()).cancel_items(request).await?;
    let results = results.into_inner().results;
    assert_eq!(results.iter().map(|it| &it.item_id).collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>());
    results.iter().for_each(|it| beside(&it.error, &it.reason, &it.retry_after));
    Ok(results)
}

fn states(results: &[CancelItemResult]) -> Vec<ItemState> {
    results.iter().map(CancelItemResult::state).collect()
}

#[tokio::test]
async fn items_of_each_state_are_removed_and_found_no_more() {
    let wire = Wire::start().await;
    let mut ids = wire.stored(vec![item("ready"), item("leased"), item("dead")]).await;
    let later = EnqueueItem { schedule: Some(Schedule::Delay(seconds(3_600))), ..item("later") };
    ids.extend(wire.stored(vec![later]).await);
    let leased = wire.take_one("leased").await;
    let dies = wire.take_one("dead").await;
    let nack = Nack { receipt: dies.receipt, dead_letter: true, ..Default::default() };
    assert_eq!(wire.nack(nack).await, None);
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    let expected = [ItemState::Ready, ItemState::Leased, ItemState::Dead, ItemState::Scheduled];

    let dry = CancelItemsRequest { dry_run: true, ..request(&all) };
    assert_eq!(states(&cancel(&wire, dry.clone()).await.unwrap()), expected);
    assert_eq!(states(&cancel(&wire, dry).await.unwrap()), expected, "nothing has changed");
    // One that is named twice has one answer for both.
    let twice: Vec<&str> = all.iter().chain(&all[..1]).copied().collect();
    let results = cancel(&wire, request(&twice)).await.unwrap();
    assert_eq!((states(&results[..4]), results[4].state()), (expected.to_vec(), ItemState::Ready));
    RefusalDetails::member(&wire.ack(&leased.receipt).await).lost("gone");
    assert!(wire.is_empty("ready").await && wire.is_empty("leased").await);

    for result in cancel(&wire, request(&all)).await.unwrap() {
        RefusalDetails::member(&result.error).is(Code::NotFound, "ITEM_NOT_FOUND", None);
    }
    wire.wait_for_metric("forebay_cancelled_total{namespace=\"wire\"}", |count| count == 4.0).await;
}

#[tokio::test]
async fn an_item_of_another_tenant_is_as_if_it_were_not_there() {
    let wire = Wire::start().await;
    let id = wire.stored(vec![item("t")]).await.remove(0);
    let never = format!("{}-999999", id.split('-').next().unwrap());
    let foreign = CancelItemsRequest { namespace: "other".into(), ..request(&[&id, &never, "77-1"]) };
    for (asked, result) in [&*id, &*never, "77-1"].iter().zip(cancel(&wire, foreign).await.unwrap()) {
        let error = result.error.as_ref().unwrap();
        assert_eq!(error.message, format!("ITEM_NOT_FOUND: there is no item {asked}"));
    }
    assert_eq!(wire.take_one("t").await.item_id, id);
}

#[tokio::test]
async fn a_call_has_a_thousand_items_at_most_and_names_what_is_wrong() {
    let wire = Wire::start().await;
    let ids = wire.stored(vec![item("t"); 1_000]).await;
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    let more: Vec<&str> = all.iter().chain(&["1-1"]).copied().collect();
    RefusalDetails::call(cancel(&wire, request(&more)).await).too_large("item_ids");
    RefusalDetails::call(cancel(&wire, request(&[])).await).invalid("item_ids");
    let nowhere = CancelItemsRequest { namespace: String::new(), ..request(&all) };
    RefusalDetails::call(cancel(&wire, nowhere).await).invalid("namespace");
    let mut wrong = all.clone();
    wrong[7] = "seven";
    let long = CancelItemsRequest { reason: "r".repeat(1_025), ..request(&wrong) };
    let results = cancel(&wire, long).await.unwrap();
    RefusalDetails::member(&results[7].error).invalid("item_ids[7]");
    assert_eq!(results.iter().filter(|it| it.error.is_none()).count(), 999);
    assert_eq!(wire.take("t", 1_000).await.len(), 1, "the others are gone");
}
