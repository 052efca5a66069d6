//! Rows of a list are chosen, and something is done with these alone.

use std::time::Duration;

use forebay_proto::v1::{GetItemRequest, ItemState};
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::{
    NAMESPACE, Stage,
    chromium::{Chromium, Looks},
};

/// The state of an item. `None`: it is gone.
async fn state(stage: &Stage, id: &str) -> Option<ItemState> {
    let (namespace, item_id) = (NAMESPACE.to_owned(), id.to_owned());
    let request = GetItemRequest { namespace, item_id, ..Default::default() };
    match stage.admin().get_item(request).await {
        Ok(found) => found.into_inner().item.map(|item| item.state()),
        Err(status) if status.code() == Code::NotFound => None,
        Err(status) => panic!("{status}"),
    }
}

async fn until(stage: &Stage, id: &str, expected: Option<ItemState>) {
    let deadline = Instant::now() + Duration::from_secs(15);
    while state(stage, id).await != expected {
        assert!(Instant::now() < deadline, "{id} does not become {expected:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn items_that_are_chosen_are_cancelled_and_no_others() {
    let stage = Stage::start().await;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(stage.enqueue("many", &number.to_string(), None).await);
    }
    // Forms need no script.
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    let page = format!("topic?ns={NAMESPACE}&name=many");
    stage.open(&browser, &page).await;
    browser.click("Cancel…").await;
    browser.until_shown("Nothing is chosen").await;
    browser.click("Go back").await;
    browser.mark(&ids[1]).await;
    browser.mark(&ids[3]).await;
    browser.picture("chosen").await;
    browser.click("Cancel…").await;
    browser.until_shown("2 items are deleted. They can't be had back.").await;
    let asked = browser.client.current_url().await.unwrap();
    browser.picture("confirm-chosen").await;
    browser.fill("input[name=reason]", "a test").await;
    browser.click("Cancel 2 items").await;
    browser.until_shown("The items were cancelled.").await;
    let expected = [Some(ItemState::Ready), None, Some(ItemState::Ready), None];
    for (id, expected) in ids.iter().zip(expected) {
        assert_eq!(state(&stage, id).await, expected, "{id}");
    }
    let records = stage.audit().await;
    // Calls that looked at payloads are written down too.
    let changes = records.iter().filter(|record| record.method != "ListItems");
    let found: Vec<_> = changes.map(|it| (it.method.as_str(), it.reason.as_str())).collect();
    assert_eq!(found, [("CancelItems", "a test")]);
    // Whoever asks again is told that they are gone.
    browser.open(asked.as_str()).await;
    browser.until_shown("None of them is there any more").await;
}

#[tokio::test]
async fn dead_letters_that_are_chosen_are_redriven_or_deleted() {
    let stage = Stage::start().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(stage.bury("refund", &format!("no customer {number}")).await);
    }
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    let pages = [
        format!("dead-letters?ns={NAMESPACE}&topic=refund"),
        format!("topic?ns={NAMESPACE}&name=refund&tab=dead"),
    ];
    let acts = [("Redrive…", "Redrive 2 dead letters"), ("Delete…", "Delete 2 dead letters")];
    for ((page, (action, button)), chosen) in pages.iter().zip(acts).zip([&ids[..2], &ids[2..4]]) {
        stage.open(&browser, page).await;
        for id in chosen {
            browser.mark(id).await;
        }
        browser.click(action).await;
        browser.click(button).await;
        browser.until_shown("The operation has begun.").await;
    }
    for id in &ids[..2] {
        until(&stage, id, Some(ItemState::Ready)).await;
    }
    for id in &ids[2..4] {
        until(&stage, id, None).await;
    }
    assert_eq!(state(&stage, &ids[4]).await, Some(ItemState::Dead), "it was not chosen");
}

#[tokio::test]
async fn figures_hold_still_while_a_row_is_chosen() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail")).await;
    let ready = || browser.text("#ready-now");
    assert_eq!(ready().await, "1");
    browser.mark(&stage.items[0]).await;
    assert_eq!(browser.text("#count").await, "1 chosen, figures hold still:");
    stage.enqueue("mail", "more", None).await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(ready().await, "1");
    browser.picture("held").await;
    browser.mark(&stage.items[0]).await;
    assert_eq!(browser.text("#count").await, "0 chosen:");
    let deadline = Instant::now() + Duration::from_secs(15);
    while ready().await != "2" {
        assert!(Instant::now() < deadline, "{}", browser.page().await);
        sleep(Duration::from_millis(50)).await;
    }
}
