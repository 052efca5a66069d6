//! Acts from pages, and that pages ask before they lose something.

use forebay_proto::v1::{GetOperationRequest, ListOperationsRequest, Operation, OperationState, Side};

use super::{
    NAMESPACE, Stage,
    chromium::{Chromium, Looks},
};

#[tokio::test]
async fn a_topic_is_paused_and_goes_on() {
    let stage = Stage::start().await;
    // Forms need no script.
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail")).await;
    browser.click("Pause deliveries").await;
    browser.until_shown("Deliveries are paused.").await;
    assert!(browser.text(".why").await.contains("paused"), "{}", browser.page().await);
    stage.open(&browser, "topics").await;
    assert!(browser.has(".chip").await, "the list shows the pause");
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail")).await;
    browser.click("Resume deliveries").await;
    browser.until_shown("The pause is over.").await;
    assert!(!browser.text(".why").await.contains("paused"));
}

#[tokio::test]
async fn a_purge_asks_for_the_name_of_the_topic() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    let page = format!("confirm?action=purge&ns={NAMESPACE}&name=mail");
    stage.open(&browser, &page).await;
    let button = "Delete 2 items";
    browser.until_shown(button).await;
    assert_eq!(
        browser.run("return document.activeElement.textContent").await,
        "Go back",
        "the safe one is first"
    );
    // Another name does nothing.
    browser.fill("input[name=typed]", "male").await;
    browser.click(button).await;
    browser.until_shown("Not understood").await;
    stage.open(&browser, &page).await;
    browser.fill("input[name=typed]", "mail").await;
    browser.fill("input[name=reason]", "a test").await;
    browser.click(button).await;
    browser.until_shown("a test").await;
    browser.until_shown("· done ·").await;
    browser.picture("operation").await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail&tab=waiting")).await;
    assert!(!browser.has("tbody .id").await, "{}", browser.page().await);
}

#[tokio::test]
async fn an_item_is_enqueued_changed_and_cancelled() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=fresh")).await;
    // A topic that is not there has no page, and says how it begins.
    browser.until_shown("fresh").await;
    stage.enqueue("fresh", "one", None).await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=fresh")).await;
    browser.click("Enqueue a test item").await;
    browser.fill("textarea[name=payload]", "{\"n\": 12345678901234567890}").await;
    browser.fill("input[name=delay]", "1h").await;
    browser.click("Enqueue").await;
    browser.until_shown("An item was enqueued.").await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=fresh&tab=scheduled")).await;
    let link = browser.run("return document.querySelector('tbody a.id').href").await;
    browser.open(link.as_str().unwrap()).await;
    browser.until_shown("12345678901234567890").await;
    browser.fill("input[name=priority]", "7").await;
    browser.click("Change").await;
    browser.until_shown("The item was changed.").await;
    assert!(browser.text("dl.pairs").await.contains('7'));
    browser.click("Cancel the item").await;
    browser.click("Cancel 1 item").await;
    browser.until_shown("The item was cancelled.").await;
    browser.open(link.as_str().unwrap()).await;
    browser.until_shown("gone").await;
}

#[tokio::test]
async fn leases_are_ended_and_no_failure_counts() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    stage.open(&browser, &format!("consumers?ns={NAMESPACE}")).await;
    browser.until_shown("worker-1").await;
    browser.click("end its leases").await;
    browser.click("End its leases").await;
    browser.until_shown("· done ·").await;
    stage.open(&browser, &format!("item?ns={NAMESPACE}&id={}", stage.items[1])).await;
    browser.until_shown("ready").await;
}

#[tokio::test]
async fn a_pause_with_a_note_is_undone_from_its_notice() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail")).await;
    browser.click("Pause with an end and a note").await;
    browser.choose("details[open] select[name=side]", "both").await;
    browser.fill("details[open] input[name=for]", "2h").await;
    browser.fill("details[open] input[name=note]", "the mail server is down").await;
    browser.click("Pause").await;
    browser.until_shown("Enqueue and deliveries are paused.").await;
    assert!(browser.text(".why").await.contains("the mail server is down"));
    let pauses = stage.topic("mail").await.pauses;
    let found: Vec<_> = pauses.iter().map(|it| (it.side(), it.note.as_str(), it.until.is_some())).collect();
    let expected = |side| (side, "the mail server is down", true);
    assert_eq!(found, [expected(Side::Enqueue), expected(Side::Dequeue)]);
    browser.picture("notice-undo").await;
    browser.click("Undo").await;
    browser.until_shown("The pause is over.").await;
    assert_eq!(stage.topic("mail").await.pauses, []);
}

/// The operation that there is.
async fn operation(stage: &Stage) -> Operation {
    let request = ListOperationsRequest { namespace: NAMESPACE.to_owned(), ..Default::default() };
    let listed = stage.admin().list_operations(request).await.unwrap().into_inner().operations;
    let [one] = &listed[..] else { panic!("{listed:?}") };
    let (namespace, operation_id) = (NAMESPACE.to_owned(), one.id.clone());
    let request = GetOperationRequest { namespace, operation_id, ..Default::default() };
    stage.admin().get_operation(request).await.unwrap().into_inner().operation.unwrap()
}

#[tokio::test]
async fn an_operation_gets_another_rate_and_is_stopped() {
    let stage = Stage::start().await;
    for _ in 0..200 {
        stage.enqueue("many", "x", None).await;
    }
    let browser = Chromium::start(Looks::default()).await;
    stage.open(&browser, &format!("confirm?action=purge&ns={NAMESPACE}&name=many")).await;
    browser.fill("input[name=typed]", "many").await;
    browser.fill("input[name=rate]", "1").await;
    browser.click("Delete 200 items").await;
    browser.until_shown("The operation has begun.").await;
    browser.fill("input[name=rate]", "2").await;
    browser.click("Change the rate").await;
    browser.until_shown("The operation has another rate.").await;
    assert_eq!(operation(&stage).await.rate_per_second, 2);
    browser.until_shown("2 items a second at most").await;
    browser.picture("operation-running").await;
    browser.click("Stop the operation").await;
    browser.until_shown("The operation is being stopped. What it has done stays.").await;
    // The open page follows it to its end.
    browser.until_shown("· stopped ·").await;
    assert_eq!(operation(&stage).await.state(), OperationState::Cancelled);
    assert!(stage.topic("many").await.ready_count > 0, "it was not over");
    // An operation that has ended has no levers.
    browser.client.refresh().await.unwrap();
    browser.until_shown("· stopped ·").await;
    assert!(!browser.has("form[action=set-rate]").await && !browser.has("form[action=stop-operation]").await);
}
