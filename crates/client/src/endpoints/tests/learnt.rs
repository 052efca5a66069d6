//! Which nodes are learnt, and when.

use std::{sync::Arc, time::Duration};

use forebay_proto::v1;
use tokio::time::Instant;
use tonic::Code;

use crate::{
    Client, ClientConfig, DequeueCall, NewItem,
    testing::{Fake, Network, config, node},
};

async fn call(client: &Client) {
    assert!(client.enqueue(vec![NewItem::new("a", "1")]).await.unwrap()[0].is_ok());
}

/// Makes a call a second until calls go to these servers.
async fn learns(client: &Client, servers: &[&str]) {
    for _ in 0..100 {
        call(client).await;
        if client.servers() == servers {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{:?} instead of {servers:?}", client.servers());
}

fn calls(fakes: &[&Arc<Fake>]) -> Vec<usize> {
    fakes.iter().map(|fake| fake.enqueue.calls().len()).collect()
}

#[tokio::test(start_paused = true)]
async fn learnt_nodes_are_called_and_those_that_leave_are_not() {
    let network = Network::default();
    let (a, b, c) = (network.fake("a:1"), network.fake("b:1"), network.fake("c:1"));
    network.cluster(&[("a:1", &a), ("b:1", &b)]);
    let client = network.client(&["a:1"]);
    learns(&client, &["a:1", "b:1"]).await;
    let before = calls(&[&a, &b]);
    for _ in 0..10 {
        call(&client).await;
    }
    assert_eq!(calls(&[&a, &b]), [before[0] + 5, before[1] + 5]);

    network.cluster(&[("a:1", &a), ("b:1", &b), ("c:1", &c)]);
    learns(&client, &["a:1", "b:1", "c:1"]).await;
    for fake in [&a, &b, &c] {
        let mut nodes = fake.cluster.lock().unwrap();
        for node in nodes.iter_mut().flatten().filter(|node| node.name != "c:1") {
            match node.name.as_str() {
                "a:1" => node.draining = true,
                _ => node.set_state(v1::NodeState::Silent),
            }
        }
    }
    learns(&client, &["c:1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_out_of_reach_is_not_called_and_the_given_ones_stay() {
    let network = Network::default();
    let (proxy, b) = (network.fake("proxy:1"), network.fake("b:1"));
    // An address that leads to another node from here, and one that leads nowhere.
    let nodes = [node("a", "b:1"), node("c", "nowhere:1"), node("d", "no address")];
    *proxy.cluster.lock().unwrap() = Some(nodes.to_vec());
    *b.cluster.lock().unwrap() = Some(vec![v1::Node { self_: true, ..node("b", "b:1") }]);
    let client = network.client(&["proxy:1"]);
    call(&client).await;
    b.nodes.seen(1).await;
    for _ in 0..30 {
        call(&client).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(client.servers(), ["proxy:1"]);
    assert!(b.enqueue.calls().is_empty() && b.nodes.calls().len() >= 2);
}

#[tokio::test(start_paused = true)]
async fn given_servers_are_spare_once_every_node_is_reached() {
    let network = Network::default();
    let (proxy, a, b) = (network.fake("proxy:1"), network.fake("a:1"), network.fake("b:1"));
    network.cluster(&[("a:1", &a), ("b:1", &b)]);
    *proxy.cluster.lock().unwrap() = a.cluster.lock().unwrap().clone();
    let client = network.client(&["proxy:1"]);
    learns(&client, &["a:1", "b:1"]).await;
    let before = proxy.enqueue.calls().len();
    for _ in 0..4 {
        call(&client).await;
    }
    assert_eq!(proxy.enqueue.calls().len(), before);
    network.cut("a:1", true);
    network.cut("b:1", true);
    call(&client).await;
    assert_eq!(proxy.enqueue.calls().len(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_given_server_is_called_if_no_learnt_one_has_the_shard() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    // Learnt while b was restarted.
    network.cluster(&[("a:1", &a)]);
    let client = network.client(&["a:1", "b:1"]);
    learns(&client, &["a:1"]).await;
    a.dequeue.fail(Code::Unavailable, Some("SHARD_UNAVAILABLE"), 1);
    let started = Instant::now();
    client.dequeue(DequeueCall::topic("a", 1)).await.unwrap();
    assert_eq!((b.dequeue.calls().len(), started.elapsed()), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_nobody_serves_is_a_reason_to_ask_soon() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    network.cluster(&[("a:1", &a)]);
    let client = network.client(&["a:1"]);
    learns(&client, &["a:1"]).await;
    // It was given that one, so its first round may be under way.
    while !client.learner.as_ref().is_some_and(|learner| learner.has_asked()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let asked = a.nodes.calls().len();
    network.cluster(&[("a:1", &a), ("b:1", &b)]);
    a.dequeue.fail(Code::Unavailable, Some("SHARD_UNAVAILABLE"), 1_000);
    let started = Instant::now();
    client.dequeue(DequeueCall::topic("a", 1)).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!((b.dequeue.calls().len(), a.nodes.calls().len()), (1, asked + 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_before_a_call_succeeds_or_while_none_is_made() {
    let network = Network::default();
    let a = network.fake("a:1");
    network.cluster(&[("a:1", &a)]);
    let client = network.client(&["a:1"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(a.nodes.calls().len(), 0);
    call(&client).await;
    a.nodes.seen(1).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(a.nodes.calls().len(), 1);
    for _ in 0..50 {
        call(&client).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let asked = a.nodes.calls().len();
    assert!((5..=8).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_fails_is_a_reason_to_ask_once() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    network.cluster(&[("a:1", &a), ("b:1", &b)]);
    let client = network.client(&["a:1", "b:1"]);
    call(&client).await;
    // Paused time goes on when nothing else is left to do: what was begun is done then.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(a.nodes.calls().len() + b.nodes.calls().len(), 1);
    network.cut("b:1", true);
    let asked = a.nodes.calls().len();
    for _ in 0..3 {
        call(&client).await;
    }
    a.nodes.seen(asked + 1).await;
    // The node stays on the list, and is tried now and then.
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        call(&client).await;
    }
    assert_eq!(a.nodes.calls().len(), asked + 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_no_nodes_is_asked_rarely() {
    let (fake, client) = Fake::start().await;
    for _ in 0..50 {
        call(&client).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let asked = fake.nodes.calls().len();
    assert!((1..=2).contains(&asked), "{asked}");
    assert_eq!(client.servers(), ["fake:1"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_learnt_over_a_channel_or_if_not_wanted() {
    let network = Network::default();
    let a = network.fake("a:1");
    network.cluster(&[("a:1", &a)]);
    let over_channel = Client::over_channel(network.channel("a:1"), ClientConfig::new("mine"));
    let given_only = network.configured(config(&["a:1"]).learn_nodes(false));
    for client in [over_channel, given_only] {
        call(&client).await;
        client.check_server().await.err();
        tokio::time::sleep(Duration::from_secs(20)).await;
        call(&client).await;
    }
    assert_eq!((a.nodes.calls().len(), a.enqueue.calls().len()), (0, 4));
    network.cut("a:1", true);
    let config = ClientConfig::new("mine").call_timeout(Duration::from_secs(1));
    let client = Client::over_channel(network.channel("a:1"), config);
    let error = client.active_topics(Default::default()).await.unwrap_err();
    assert!(error.message().starts_with("cannot reach mine: "), "{error}");
}
