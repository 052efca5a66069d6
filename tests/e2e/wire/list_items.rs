//! ListItems with a filter.

use forebay_proto::v1::{
    EnqueueItem, ItemState, ListItemsRequest, ListItemsResponse, Nack,
    admin_service_client::AdminServiceClient, enqueue_item::Schedule,
};
use tonic::Status;

use super::{NAMESPACE, RefusalDetails, Wire, item, seconds};

fn request(state: ItemState, filter: &str) -> ListItemsRequest {
    ListItemsRequest {
        namespace: NAMESPACE.into(),
        topic: "t".into(),
        state: state.into(),
        filter: filter.to_owned(),
        ..Default::default()
    }
}

async fn list(wire: &Wire, request: ListItemsRequest) -> Result<ListItemsResponse, Status> {
    let answer = AdminServiceClient::new(wire.node.channel()).list_items(request).await?;
    Ok(answer.into_inner())
}

fn ids(page: &ListItemsResponse) -> Vec<&str> {
    page.items.iter().map(|item| &*item.item_id).collect()
}

fn with_priority(priority: i32) -> EnqueueItem {
    EnqueueItem { priority, ..item("t") }
}

#[tokio::test]
async fn a_filter_picks_items_in_each_state_and_keeps_their_order() {
    let wire = Wire::start().await;
    // Two of each state, with other priorities.
    let dies = wire.stored(vec![with_priority(1), with_priority(2)]).await;
    for (taken, reason) in wire.take("t", 2).await.into_iter().zip(["timeout 17", "no such address"]) {
        let (receipt, reason) = (taken.receipt, reason.to_owned());
        let nack = Nack { receipt, reason, dead_letter: true, ..Default::default() };
        assert_eq!(wire.nack(nack).await, None);
    }
    let leased = wire.stored(vec![with_priority(3), with_priority(4)]).await;
    assert_eq!(wire.take("t", 2).await.len(), 2);
    let later =
        |priority| EnqueueItem { schedule: Some(Schedule::Delay(seconds(3_600))), ..with_priority(priority) };
    let scheduled = wire.stored(vec![later(5), later(6)]).await;
    let ready = wire.stored(vec![with_priority(7), with_priority(8), with_priority(7)]).await;

    for (state, filter, expected) in [
        (ItemState::Ready, "priority = 7", vec![&ready[0], &ready[2]]),
        (ItemState::Ready, "priority > 7 AND age < 1h", vec![&ready[1]]),
        (ItemState::Ready, "age > 1h", vec![]),
        (ItemState::Ready, "attempt = 0", vec![&ready[0], &ready[2], &ready[1]]),
        (ItemState::Scheduled, "NOT priority = 5", vec![&scheduled[1]]),
        (ItemState::Leased, "priority <= 3", vec![&leased[0]]),
        (ItemState::Leased, "priority > 4", vec![]),
        (ItemState::Dead, "reason = \"timeout*\"", vec![&dies[0]]),
        (ItemState::Dead, "priority >= 1 AND attempt = 1", vec![&dies[1], &dies[0]]),
        (ItemState::Dead, "", vec![&dies[1], &dies[0]]),
    ] {
        let page = list(&wire, request(state, filter)).await.unwrap();
        assert_eq!(
            (ids(&page), &*page.next_page_token),
            (expected.into_iter().map(|id| &**id).collect(), "")
        );
        let of_state = if state == ItemState::Ready { 3 } else { 2 };
        assert!(page.scanned >= of_state, "{filter}: {}", page.scanned);
    }
}

#[tokio::test]
async fn a_wrong_filter_is_named_and_a_token_belongs_to_its_filter() {
    let wire = Wire::start().await;
    wire.stored((0..5).map(with_priority).collect()).await;
    for filter in ["colour = 3", "priority ~ 3", "reason = \"x\"", "priority = many"] {
        RefusalDetails::call(list(&wire, request(ItemState::Ready, filter)).await).invalid("filter");
    }
    RefusalDetails::call(list(&wire, request(ItemState::Ready, &"a".repeat(1_025))).await)
        .too_large("filter");
    let two = |filter| ListItemsRequest { page_size: 2, ..request(ItemState::Ready, filter) };
    let first = list(&wire, two("priority > 0")).await.unwrap();
    assert_eq!(first.items.iter().map(|it| it.priority).collect::<Vec<_>>(), [1, 2]);
    let page_token = first.next_page_token;
    let other = ListItemsRequest { page_token: page_token.clone(), ..two("priority > 1") };
    RefusalDetails::call(list(&wire, other).await).invalid("page_token");
    let second = list(&wire, ListItemsRequest { page_token, ..two("priority > 0") }).await.unwrap();
    assert_eq!(second.items.iter().map(|it| it.priority).collect::<Vec<_>>(), [3, 4]);
}

/// A page that has looked at enough ends, even if nothing has passed.
#[tokio::test]
async fn a_page_looks_at_so_many_items_and_goes_on() {
    let wire = Wire::start().await;
    let in_first = |priority| EnqueueItem { shard: Some(1), ..with_priority(priority) };
    for _ in 0..51 {
        wire.stored(vec![in_first(0); 1_000]).await;
    }
    let last = wire.stored(vec![in_first(9)]).await;
    // By number, or by time: a slow machine has more pages, and none that looks at more.
    let (mut pages, mut found) = (Vec::new(), Vec::new());
    let mut query = request(ItemState::Ready, "priority = 9");
    loop {
        let page = list(&wire, query.clone()).await.unwrap();
        pages.push(page.scanned);
        found.extend(ids(&page).into_iter().map(str::to_owned));
        if page.next_page_token.is_empty() {
            break;
        }
        assert_eq!(found, [""; 0], "it is the last one");
        query.page_token = page.next_page_token;
    }
    assert_eq!((found, pages.iter().sum::<u64>()), (last, 51_001));
    assert!(pages.len() >= 2 && pages.iter().all(|scanned| (1..=50_000).contains(scanned)), "{pages:?}");
}
