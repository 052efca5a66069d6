//! Content of pages.

use std::time::Duration;

use fantoccini::Locator;

use super::{
    NAMESPACE, SCRIPT, Stage,
    chromium::{Chromium, Looks},
};
use crate::wire::http1::{Answer, Request};

/// The most that a page has.
const PAGE_BYTES_MAX: usize = 60 << 10;

#[tokio::test]
async fn every_page_reads_without_a_script() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    for (name, page) in stage.pages() {
        stage.open(&browser, &page).await;
        let heading = browser.text("h1").await;
        assert!(!heading.is_empty(), "{name} has no heading");
        for failed in ["Not found", "Not understood", "This failed", "Try again later", "Not allowed"] {
            assert_ne!(heading, failed, "{name}: {}", browser.page().await);
        }
        assert!(browser.has("nav a").await, "{name} leads nowhere");
    }
    // Texts of the pages on the same things.
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail")).await;
    let why = browser.text(".why").await;
    assert!(why.contains("1 item is ready") && why.contains("3 dead letters"), "{why}");
    stage.open(&browser, &format!("item?ns={NAMESPACE}&id={}", stage.items[3])).await;
    let page = browser.page().await;
    assert!(page.contains("worker-1") && page.contains("dead-lettered"), "{page}");
}

#[tokio::test]
async fn what_tenants_send_is_text() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    for (name, page) in stage.pages() {
        stage.open(&browser, &page).await;
        assert_eq!(browser.run("return typeof window.hacked").await, "undefined", "{name}");
        let foreign = browser.run("return document.querySelectorAll('main img, main script').length").await;
        assert_eq!(foreign, 0, "{name}");
    }
    stage.open(&browser, &format!("item?ns={NAMESPACE}&id={}", stage.items[0])).await;
    assert!(browser.page().await.contains(SCRIPT), "the payload is shown as it is");
    stage.open(&browser, &format!("dead-letters?ns={NAMESPACE}&topic=mail")).await;
    assert!(browser.page().await.contains("<script>"), "and so is a reason");
}

#[tokio::test]
async fn an_open_page_follows_what_happens() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    stage.open(&browser, &format!("topics?ns={NAMESPACE}&sort=name")).await;
    let ready = || browser.run("return document.querySelector('tbody tr td:nth-child(3)').textContent");
    assert_eq!(ready().await, "1");
    browser.run("window.stays = true").await;
    for _ in 0..4 {
        stage.enqueue("mail", "more", None).await;
    }
    let deadline = tokio::time::Instant::now() + Duration::from_secs(15);
    while ready().await != "5" {
        assert!(tokio::time::Instant::now() < deadline, "{}", browser.page().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(browser.run("return window.stays").await, true, "it was not loaded again");
    // A topic that is new is told, and nothing moves.
    stage.enqueue("another", "x", None).await;
    browser.until_shown("1 new, reload").await;
    assert!(!browser.page().await.contains("another"));
    // Nothing moves while it is held.
    browser.click("hold").await;
    stage.enqueue("mail", "more", None).await;
    browser.until_shown("held, ").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(ready().await, "5");
    browser.click("go on").await;
    while ready().await != "6" {
        assert!(tokio::time::Instant::now() < deadline + Duration::from_secs(15));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_row_of_a_topic_has_a_line_of_its_last_minutes() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    stage.open(&browser, &format!("topics?ns={NAMESPACE}&sort=name")).await;
    browser.run("window.stays = true").await;
    stage.enqueue("mail", "more", None).await;
    let line = "const line = document.querySelector('tbody tr svg.row');
        const box = line.getBoundingClientRect();
        const points = line.querySelector('polyline').getAttribute('points');
        return [points, line.querySelector('title').textContent, box.width, box.height];";
    // A step has ten seconds, and shows once it is over.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let shown = loop {
        let shown = browser.run(line).await;
        if shown[1] == "1 to 2 ready" || shown[1] == "2 ready" {
            break shown;
        }
        assert!(tokio::time::Instant::now() < deadline, "{shown}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    // The last point is at the right end, and the highest one.
    assert!(shown[0].as_str().unwrap().ends_with("29,1"), "{shown}");
    assert_eq!((&shown[2], &shown[3]), (&96.into(), &24.into()), "{shown}");
    assert_eq!(browser.run("return window.stays").await, true, "it was not loaded again");
    browser.picture("topics-line").await;
}

#[tokio::test]
async fn figures_of_the_cluster_and_of_a_namespace_say_how_long_items_wait() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    for page in ["".to_owned(), format!("namespace?ns={NAMESPACE}")] {
        stage.open(&browser, &page).await;
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        // Nodes may not have looked yet when the page is made.
        while !browser.has("#wait-now").await || browser.text("#wait-now").await == "–" {
            assert!(tokio::time::Instant::now() < deadline, "{}", browser.page().await);
            tokio::time::sleep(Duration::from_millis(500)).await;
            stage.open(&browser, &page).await;
        }
        let figures = browser.text(".figures").await;
        for expected in ["oldest ready", "wait, p99", "ready", "in /s", "out /s", "failed /s"] {
            assert!(figures.contains(expected), "{page}: {expected} is not in {figures}");
        }
        browser.until_shown("\n3\ndead letters").await;
        // The figures go on while the page is open.
        browser.run("window.stays = true").await;
        let ready = browser.text("#ready-now").await.parse::<u64>().unwrap();
        stage.enqueue("mail", "more", None).await;
        while browser.text("#ready-now").await != (ready + 1).to_string() {
            assert!(tokio::time::Instant::now() < deadline, "{}", browser.page().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(browser.run("return window.stays").await, true, "it was not loaded again");
    }
}

#[tokio::test]
async fn topics_are_put_in_order_by_the_heads_of_their_columns() {
    let stage = Stage::start().await;
    for (topic, items) in [("alpha", 1), ("beta", 3)] {
        for _ in 0..items {
            stage.enqueue(topic, "x", None).await;
        }
    }
    // Links need no script.
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    stage.open(&browser, &format!("topics?ns={NAMESPACE}&q=a")).await;
    let expected = [
        ("ready", "descending", "beta"),
        ("dead", "descending", "mail"),
        ("topic", "ascending", "alpha beta mail"),
        ("oldest", "descending", "mail"),
    ];
    for (head, direction, order) in expected {
        browser.click(head).await;
        assert_eq!(browser.text("th[aria-sort]").await, head);
        assert!(browser.has(&format!("th[aria-sort={direction}]")).await, "{head}");
        let mut names = Vec::new();
        for link in browser.client.find_all(Locator::Css("tbody a")).await.unwrap() {
            names.push(link.text().await.unwrap());
        }
        assert!(names.join(" ").starts_with(order), "{head}: {names:?}");
        let address = browser.client.current_url().await.unwrap();
        assert!(address.query().unwrap().starts_with(&format!("ns={NAMESPACE}&q=a&")), "the filter stays");
    }
    browser.picture("topics-sorted").await;
}

#[tokio::test]
async fn a_page_of_many_topics_is_small() {
    let stage = Stage::start().await;
    for number in 0..100 {
        let topic = format!("orders/eu-west/checkout/reminders-{number:03}");
        stage.enqueue(&topic, "x", None).await;
    }
    for page in ["/topics", "/topics?sort=name", &format!("/topics?ns={NAMESPACE}&sort=-ready")] {
        let answer = Answer::parse(stage.node.ask(&Request::get(page).encoded(&stage.node.http)).await);
        assert_eq!(answer.text().matches("<tr data-row").count(), 50, "{page}");
        assert!(answer.body.len() <= PAGE_BYTES_MAX, "{page} has {} bytes", answer.body.len());
    }
}
