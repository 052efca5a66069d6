//! Dead letters are redriven from pages: a group of them, and one of them.

use forebay_proto::v1::{GetItemRequest, ItemState};

use super::{
    NAMESPACE, Stage,
    chromium::{Chromium, Looks},
};

/// The state of an item.
async fn state(stage: &Stage, id: &str) -> ItemState {
    let (namespace, item_id) = (NAMESPACE.to_owned(), id.to_owned());
    let request = GetItemRequest { namespace, item_id, ..Default::default() };
    stage.admin().get_item(request).await.unwrap().into_inner().item.unwrap().state()
}

#[tokio::test]
async fn a_group_of_dead_letters_is_redriven_and_no_other() {
    let stage = Stage::start().await;
    // Reasons of another group, which begin as those of the first one do, and have all that those have.
    let others =
        [stage.bury("refund", "no customer 1").await, stage.bury("refund", "no customer 2 at all").await];
    let grouped = stage.bury("refund", "no customer 3").await;
    let browser = Chromium::start(Looks::default()).await;
    stage.open(&browser, &format!("dead-letters?ns={NAMESPACE}&topic=refund")).await;
    let first = browser.text("tbody tr").await;
    assert!(first.starts_with("2 no customer <n>"), "{first}");
    browser.picture("groups").await;
    browser.click("look").await;
    browser.until_shown("Redrive these").await;
    let found = browser.run("return document.querySelectorAll('#rows ~ .scroll tbody tr').length").await;
    assert_eq!(found, 2, "{}", browser.page().await);
    browser.click("Redrive these").await;
    browser.until_shown("Reason no customer <n>").await;
    browser.picture("confirm-group").await;
    browser.fill("input[name=reason]", "they are back").await;
    browser.click("Redrive 2 dead letters").await;
    browser.until_shown("they are back").await;
    browser.until_shown("· done ·").await;
    browser.picture("operation-group").await;
    for (id, expected) in
        [(&others[0], ItemState::Ready), (&grouped, ItemState::Ready), (&others[1], ItemState::Dead)]
    {
        assert_eq!(state(&stage, id).await, expected, "{id}");
    }
    let topic = stage.topic("refund").await;
    assert_eq!((topic.ready_count, topic.dead_count), (2, 1));
    stage.open(&browser, &format!("operations?ns={NAMESPACE}")).await;
    browser.until_shown("they are back").await;
}

#[tokio::test]
async fn one_dead_letter_is_redriven_from_its_page() {
    let stage = Stage::start().await;
    let twin = stage.bury("refund", "no customer 1").await;
    let dead = stage.bury("refund", "no customer 1").await;
    // Forms need no script.
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    let page = format!("item?ns={NAMESPACE}&id={dead}");
    stage.open(&browser, &page).await;
    browser.click("Redrive the item").await;
    browser.until_shown("1 dead letter becomes an item again").await;
    // Whoever does not want it is back where it began.
    browser.click("Go back").await;
    assert!(browser.text("h1").await.contains(&dead));
    assert_eq!(state(&stage, &dead).await, ItemState::Dead);
    browser.click("Redrive the item").await;
    browser.click("Redrive 1 dead letter").await;
    browser.until_shown("The operation has begun.").await;
    let redriven = async {
        while state(&stage, &dead).await != ItemState::Ready {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(15), redriven).await.expect("it is redriven");
    assert_eq!(state(&stage, &twin).await, ItemState::Dead);
    // A dead letter that is none any more is not redriven twice.
    stage.open(&browser, &format!("confirm?action=redrive&ns={NAMESPACE}&name=refund&id={dead}")).await;
    browser.until_shown("Nothing matches now").await;
}

#[tokio::test]
async fn a_question_changes_nothing_and_its_answer_is_written_down() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    for action in ["purge", "redrive", "delete-dead", "reset-leases", "cancel"] {
        stage.open(&browser, &format!("confirm?action={action}&ns={NAMESPACE}&name=mail")).await;
        browser.until_shown("Type the name of the topic").await;
    }
    assert_eq!(stage.audit().await, [], "looking is no act");
    stage
        .open(&browser, &format!("confirm?action=redrive&ns={NAMESPACE}&name=mail&id={}", stage.items[3]))
        .await;
    browser.fill("input[name=reason]", "once more").await;
    browser.click("Redrive 1 dead letter").await;
    browser.until_shown("The operation has begun.").await;
    let records = stage.audit().await;
    let found: Vec<_> = records.iter().map(|it| (it.method.as_str(), it.reason.as_str())).collect();
    assert_eq!(found, [("StartOperation", "once more")]);
}
