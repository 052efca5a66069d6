//! The page and `/status.json` while a database is away: never green, and the same words in both.

use std::{fs, time::Duration};

use forebay_testkit::servers::{Kind, Private};
use tokio::time::{Instant, sleep};

use crate::{
    backend::{Backend, Cluster},
    node::Node,
};

/// A change of the database's state is seen by then.
const SEEN_TIMEOUT: Duration = Duration::from_secs(30);

/// The node's state, once it begins with this text.
async fn state(node: &Node, begins: &str) -> String {
    let deadline = Instant::now() + SEEN_TIMEOUT;
    loop {
        let status: serde_json::Value = serde_json::from_str(&node.fetch("/status.json").await.1).unwrap();
        let state = status["state"].as_str().expect("a state").to_owned();
        if state.starts_with(begins) {
            return state;
        }
        assert!(Instant::now() < deadline, "{state}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// The first page, once nothing on it is good: the other shard is asked at another time.
async fn page_without_good(node: &Node) -> String {
    let deadline = Instant::now() + SEEN_TIMEOUT;
    loop {
        let page = node.fetch("/").await.1;
        if !page.contains("class=\"good\"") {
            return page;
        }
        assert!(Instant::now() < deadline, "{page}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_database_that_goes_away_is_seen_on_the_page_and_in_the_log() {
    let mut server = Private::start(Kind::MariaDb, &[]).await;
    let urls = [server.fresh_url().await, server.fresh_url().await];
    let address = urls[0].split(['@', '/']).nth(3).expect("a URL with an address").to_owned();
    let cluster = Cluster::on(Backend::Server(Kind::MariaDb), &urls, 1).await;
    let node = cluster.start(0).await;
    assert_eq!(state(&node, "serving").await, "serving");
    assert!(node.fetch("/").await.1.contains("<span id=\"state\" class=\"good\">serving</span>"));

    server.kill9().await;
    let silent = format!("shard 1 ({address}) does not answer");
    let degraded = state(&node, &format!("degraded: {silent} since ")).await;
    let page = page_without_good(&node).await;
    assert!(page.contains("<span id=\"state\" class=\"bad\">degraded</span>"), "{page}");
    let first = degraded.split(';').next().unwrap().replacen("degraded: s", "S", 1);
    assert!(page.contains(&format!("{first}.")), "{first}: {page}");
    let log = || fs::read_to_string(cluster.log(0)).unwrap();
    let count = |text: &str| log().matches(text).count();
    assert_eq!(count(&silent), 1, "{}", log());

    server.restart().await;
    assert_eq!(state(&node, "serving").await, "serving");
    let again = format!("shard 1 ({address}) answers again after ");
    assert_eq!((count(&silent), count(&again)), (1, 1), "{}", log());
}
