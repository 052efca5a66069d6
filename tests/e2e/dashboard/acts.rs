//! What is done from pages, and that pages ask before they lose something.

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
