//! A page is never falsely calm: what is wrong is said, and figures that are old look old.

use std::time::Duration;

use forebay_testkit::servers::{Kind, Private};
use tokio::time::{Instant, sleep};

use super::{
    NAMESPACE, Stage,
    chromium::{Chromium, Looks},
};
use crate::cluster::nodes::{Nodes, owned_by};

#[tokio::test]
async fn figures_that_are_old_say_so() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail")).await;
    browser.until_shown("UTC").await;
    assert_eq!(browser.run("return document.body.className").await, "");
    // The node stands still.
    stage.node.freeze();
    until_class(&browser, "old").await;
    assert!(browser.text("#fresh").await.starts_with("figures of "));
    browser.picture("old").await;
    stage.node.thaw();
    until_class(&browser, "").await;
    assert!(!browser.text("#fresh").await.starts_with("figures of "));
}

/// Waits until the body of the page has this class.
async fn until_class(browser: &Chromium, class: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while browser.run("return document.body.className").await != class {
        assert!(Instant::now() < deadline, "{}", browser.page().await);
        sleep(Duration::from_millis(50)).await;
    }
}

/// Two nodes with a shard each, and the overview of the first one in a browser.
async fn overview(database: &Private) -> (Nodes, Vec<crate::node::Node>, Chromium) {
    let urls = [database.fresh_url().await, database.fresh_url().await];
    let cluster = Nodes::on(&database.fresh_url().await, &urls, 2).await;
    let nodes = cluster.start_all().await;
    let begun = Instant::now();
    while owned_by(&nodes[1]).await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the second node gets no shard");
        sleep(Duration::from_millis(50)).await;
    }
    let browser = Chromium::start(Looks::default()).await;
    browser.open(&format!("http://{}/", nodes[0].http)).await;
    browser.until_shown("serving").await;
    assert_eq!(browser.text(".strip").await, "");
    (cluster, nodes, browser)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_down_is_named_on_the_page() {
    let mut database = Private::start(Kind::MariaDb, &[]).await;
    let (_cluster, _nodes, browser) = overview(&database).await;
    database.kill9().await;
    // The open page says so, and so does one that is opened now.
    browser.until_shown("degraded").await;
    browser.until_shown("does not answer").await;
    browser.picture("database-down").await;
    browser.client.refresh().await.unwrap();
    browser.until_shown("degraded").await;
    assert!(!browser.text(".strip").await.is_empty());
    database.restart().await;
    browser.until_shown("serving").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_can_not_be_asked_makes_figures_too_small() {
    let database = Private::start(Kind::MariaDb, &[]).await;
    let (_cluster, nodes, browser) = overview(&database).await;
    browser.open(&format!("http://{}/topics?sort=name", nodes[0].http)).await;
    assert!(!browser.page().await.contains("could not be asked"));
    // Its owner stands still. A page that is opened now names the shard.
    let silent = owned_by(&nodes[1]).await;
    nodes[1].freeze();
    browser.client.refresh().await.unwrap();
    browser.until_shown("could not be asked").await;
    browser.picture("shard-missing").await;
    let named = silent.iter().any(|shard| shard.to_string().chars().all(|c| c.is_ascii_digit()));
    assert!(named && browser.page().await.contains('≥'), "{silent:?}");
    nodes[1].thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_gone_is_named() {
    let database = Private::start(Kind::MariaDb, &[]).await;
    let (_cluster, mut nodes, browser) = overview(&database).await;
    nodes.remove(1).kill9().await;
    browser.open(&format!("http://{}/nodes", nodes[0].http)).await;
    let begun = Instant::now();
    loop {
        browser.client.refresh().await.unwrap();
        let page = browser.page().await;
        if page.contains("silent") || page.contains("does not answer") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{page}");
        sleep(Duration::from_millis(100)).await;
    }
    browser.picture("node-gone").await;
}
