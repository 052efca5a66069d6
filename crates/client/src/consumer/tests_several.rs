//! A consumer of several servers: whom it asks, for how much, and what it does about those that fail.

use forebay_proto::v1;
use tokio::time::Instant;

use super::*;
use crate::{
    RetryPolicy,
    testing::{Fake, HeldItems, Network, Stock, config, item},
};

/// Handles an item for a while and tells `held`.
fn handler(held: &HeldItems, time: Duration) -> impl Handler {
    let held = held.clone();
    move |_: Delivery| {
        let held = held.clone();
        async move {
            tokio::time::sleep(time).await;
            held.handled();
            Outcome::Ack
        }
    }
}

fn stock(fake: &Fake, numbers: std::ops::Range<usize>, held: &HeldItems) {
    *fake.stock.lock().unwrap() = Some(Stock { numbers, held: held.clone() });
}

fn acked(fakes: &[&Arc<Fake>]) -> Vec<usize> {
    fakes.iter().map(|fake| fake.ack.calls().iter().map(|call| call.acks.len()).sum()).collect()
}

/// Waits until so many items were acked, at all servers together.
async fn all_acked(fakes: &[&Arc<Fake>], items: usize) {
    while acked(fakes).iter().sum::<usize>() < items {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_server_is_asked_and_never_for_more_than_there_are_handlers() {
    for (concurrency, topics) in [(1, 1), (2, 1), (3, 2), (7, 1), (16, 1), (16, 3), (100, 2)] {
        let (network, held) = (Network::default(), HeldItems::default());
        let fakes = ["a:1", "b:1", "c:1"].map(|address| network.fake(address));
        for (number, fake) in fakes.iter().enumerate() {
            stock(fake, number * 1_000..number * 1_000 + 100, &held);
        }
        let client = network.client(&["a:1", "b:1", "c:1"]);
        let topics: Vec<_> = (0..topics).map(|topic| topic.to_string()).collect();
        let more = if concurrency < topics.len() * 3 { (topics.len() - 1) * 3 } else { 0 };
        let config = ConsumerConfig::new(topics).concurrency(concurrency);
        let consumer = Consumer::start(client, config, handler(&held, Duration::from_millis(20)));
        let all = [&fakes[0], &fakes[1], &fakes[2]];
        all_acked(&all, 300).await;
        assert_eq!(consumer.stop().await.unwrap().acked, 300);
        assert_eq!(acked(&all), [100; 3], "each item is acked where it came from");
        assert!(held.most() <= concurrency + more, "{} for {concurrency}", held.most());
        assert!(held.most() >= concurrency.min(300) * 3 / 4, "{} for {concurrency}", held.most());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_alone_with_items_gets_nearly_all_handlers() {
    let (network, held) = (Network::default(), HeldItems::default());
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    stock(&a, 0..1_000, &held);
    let client = network.client(&["a:1", "b:1"]);
    let config = ConsumerConfig::new(["a"]).concurrency(20);
    let started = Instant::now();
    let consumer = Consumer::start(client, config, handler(&held, Duration::from_millis(100)));
    all_acked(&[&a], 1_000).await;
    // 19 at a time for 100 ms each.
    assert!(started.elapsed() < Duration::from_millis(6_500), "{:?}", started.elapsed());
    assert!(b.dequeue.calls().len() < 20, "{}", b.dequeue.calls().len());
    consumer.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drains_or_is_gone_is_left_and_taken_up_again() {
    let (network, held) = (Network::default(), HeldItems::default());
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.dequeue.fail(Code::Unavailable, Some("NODE_DRAINING"), 3);
    stock(&a, 0..10, &held);
    stock(&b, 100..110, &held);
    let retry = RetryPolicy { max: Duration::from_secs(1), ..RetryPolicy::default() };
    let client = network.configured(config(&["a:1", "b:1"]).retry(retry));
    let config = ConsumerConfig::new(["a"]).concurrency(2);
    let consumer = Consumer::start(client, config, handler(&held, Duration::from_millis(1)));
    all_acked(&[&a, &b], 20).await;

    network.cut("a:1", true);
    stock(&b, 110..120, &held);
    all_acked(&[&b], 20).await;
    network.cut("a:1", false);
    stock(&a, 10..20, &held);
    all_acked(&[&a], 20).await;
    assert_eq!(consumer.stop().await.unwrap(), ConsumerReport { acked: 40, ..Default::default() });
    assert!(held.most() <= 2);
}

#[tokio::test(start_paused = true)]
async fn learnt_nodes_are_asked_too() {
    let (network, held) = (Network::default(), HeldItems::default());
    let (a, b, c) = (network.fake("a:1"), network.fake("b:1"), network.fake("c:1"));
    network.cluster(&[("a:1", &a), ("b:1", &b)]);
    [&a, &b, &c].into_iter().enumerate().for_each(|(number, fake)| {
        stock(fake, number * 10..number * 10 + 10, &held);
    });
    let config = ConsumerConfig::new(["a"]).concurrency(4);
    let consumer = Consumer::start(network.client(&["a:1"]), config, handler(&held, Duration::ZERO));
    let started = Instant::now();
    all_acked(&[&a, &b], 20).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    // Nobody else makes calls.
    network.cluster(&[("a:1", &a), ("b:1", &b), ("c:1", &c)]);
    all_acked(&[&c], 10).await;
    assert!(started.elapsed() < Duration::from_secs(16), "{:?}", started.elapsed());
    assert_eq!(consumer.stop().await.unwrap().acked, 30);
}

#[tokio::test(start_paused = true)]
async fn idle_servers_are_asked_with_long_polls() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    let consumer =
        Consumer::start(network.client(&["a:1", "b:1"]), ConsumerConfig::new(["a"]), |_: Delivery| async {
            Outcome::Ack
        });
    tokio::time::sleep(Duration::from_secs(100)).await;
    for fake in [&a, &b] {
        let polls = fake.dequeue.calls();
        assert!((5..=8).contains(&polls.len()), "{}", polls.len());
        assert!(polls.iter().all(|poll| poll.demands[0].max_items == 1));
        assert_eq!(polls.last().unwrap().wait.as_ref().map(|wait| wait.seconds), Some(20));
    }
    consumer.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_extended_elsewhere_if_its_server_hangs() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.dequeue.answer(v1::DequeueResponse { items: vec![item(0)] });
    a.extend.hold(true);
    let consumer =
        Consumer::start(network.client(&["a:1", "b:1"]), ConsumerConfig::new(["a"]), |_: Delivery| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Outcome::Ack
        });
    let started = Instant::now();
    b.extend.seen(1).await;
    assert!(started.elapsed() < Duration::from_secs(25), "before the lease of 30 s ends");
    assert_eq!(consumer.stop().await.unwrap(), ConsumerReport { released: 1, ..Default::default() });
}
