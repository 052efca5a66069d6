//! The levers of those who run a cluster: shards, nodes and tokens are changed from pages.

use std::time::Duration;

use forebay_proto::v1::{
    ListNodesRequest, ListShardsRequest, Node as ListedNode, Shard, ShardState,
    admin_service_client::AdminServiceClient,
};
use forebay_testkit::servers::Kind;
use tokio::time::{Instant, sleep};

use super::chromium::{Chromium, Looks};
use crate::{
    cluster::{
        nodes::{Nodes, owned_by},
        operate::owns,
        tokens::{guarded, says},
    },
    node::Node,
};

/// Shards move within this time.
const WITHIN: Duration = Duration::from_secs(30);

async fn shard(node: &Node, id: u32) -> Shard {
    let mut admin = AdminServiceClient::new(node.channel());
    let shards = admin.list_shards(ListShardsRequest::default()).await.unwrap().into_inner().shards;
    shards.into_iter().find(|shard| shard.id == id).unwrap()
}

async fn listed(node: &Node, name: &str) -> ListedNode {
    let mut admin = AdminServiceClient::new(node.channel());
    let nodes = admin.list_nodes(ListNodesRequest::default()).await.unwrap().into_inner().nodes;
    nodes.into_iter().find(|node| node.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_is_drained_and_moved_from_its_page() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let nodes = cluster.start_all().await;
    // Forms need no script.
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    browser.open(&format!("http://{}/shards?id=2", nodes[0].http)).await;
    browser.click("Drain a shard").await;
    browser.fill("details[open] input[name=reason]", "its disk is full").await;
    browser.click("Drain").await;
    browser.until_shown("It is being drained.").await;
    assert_eq!(shard(&nodes[0], 2).await.state(), ShardState::Draining);
    assert_eq!(shard(&nodes[0], 1).await.state(), ShardState::Active, "the other one is left alone");
    assert!(browser.text("table").await.contains("draining"), "{}", browser.page().await);
    browser.picture("shard-draining").await;
    browser.click("End a drain").await;
    browser.click("End its drain").await;
    browser.until_shown("The shard takes new items again.").await;
    assert_eq!(shard(&nodes[0], 2).await.state(), ShardState::Active);

    for (to, owner) in [("node1", 1), ("node0", 0)] {
        browser.click("Move a shard").await;
        browser.choose("details[open] select[name=id]", "1").await;
        browser.choose("details[open] select[name=node]", to).await;
        browser.click("Move").await;
        browser.until_shown("The shard moves.").await;
        let moved = shard(&nodes[0], 1).await;
        assert!(moved.pinned && moved.wished_owner == to, "{moved:?}");
        let begun = Instant::now();
        while !owned_by(&nodes[owner]).await.contains(&1) {
            assert!(begun.elapsed() < WITHIN, "{moved:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }
    browser.click("End a pin").await;
    browser.click("End its pin").await;
    browser.until_shown("The shard is no longer pinned.").await;
    assert!(!shard(&nodes[0], 1).await.pinned);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_drained_from_the_page_of_nodes() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let nodes = cluster.start_all().await;
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    browser.open(&format!("http://{}/nodes", nodes[0].http)).await;
    browser.click_in_row("node1", "drain").await;
    browser.fill("details[open] input[name=reason]", "it gets more memory").await;
    browser.picture("node-drain").await;
    browser.click_in_row("node1", "Drain").await;
    browser.until_shown("It is being drained.").await;
    browser.until_shown("draining, as an operator wants it").await;
    assert!(listed(&nodes[0], "node1").await.draining && !listed(&nodes[0], "node0").await.draining);
    owns(&nodes[0], &[1, 2]).await;
    owns(&nodes[1], &[]).await;
    browser.click_in_row("node1", "End its drain").await;
    browser.until_shown("The node may own shards again.").await;
    assert!(!listed(&nodes[0], "node1").await.draining);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_made_used_and_revoked() {
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    let first = guarded(&cluster).await;
    let node = &cluster.start(0).await;
    node.wait_for_readyz(200).await;
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    browser.open(&format!("http://{}/access", node.http)).await;
    browser.fill("input[name=token]", &first).await;
    browser.click("Log in").await;
    browser.until_shown("A new token").await;
    // A right that is none is named, and nothing is made.
    let form = "form[action=create-token]";
    browser.fill(&format!("{form} input[name=name]"), "mailer").await;
    browser.fill(&format!("{form} input[name=grants]"), "shop:fly").await;
    browser.click("Make a token").await;
    browser.until_shown("the field grants is wrong").await;
    browser.open(&format!("http://{}/access", node.http)).await;
    assert!(!browser.page().await.contains("shop:"), "{}", browser.page().await);
    browser.fill(&format!("{form} input[name=name]"), "mailer").await;
    browser.fill(&format!("{form} input[name=grants]"), "shop:produce,consume").await;
    browser.fill(&format!("{form} input[name=ends]"), "90d").await;
    browser.click("Make a token").await;
    browser.until_shown("It is not shown again").await;
    let secret = browser.text("main pre").await;
    says(node, &secret, Ok("mailer")).await;
    browser.click("Back to all tokens").await;
    assert!(!browser.page().await.contains(&secret), "it is shown once");
    browser.picture("tokens").await;

    // Another name revokes nothing.
    for (typed, said) in [("first", "so it was not revoked"), ("mailer", "The token was revoked.")] {
        browser.open(&format!("http://{}/access", node.http)).await;
        browser.click_in_row("mailer", "revoke").await;
        browser.fill("details[open] input[name=typed]", typed).await;
        says(node, &secret, Ok("mailer")).await;
        browser.click_in_row("mailer", "Revoke").await;
        browser.until_shown(said).await;
    }
    assert!(browser.text("tbody").await.contains("revoked"));
    says(node, &secret, Err("BAD_CREDENTIALS")).await;
    says(node, &first, Ok("first")).await;
}
