//! Which calls go to all servers in turn, and which stay with one.

use std::time::Duration;

use forebay_proto::v1;

use crate::{
    Client, DequeueCall, Nack, NackAction, NewItem, Producer, ProducerConfig,
    testing::{Network, config, item},
};

#[tokio::test(start_paused = true)]
async fn calls_go_to_all_servers_in_turn() {
    let network = Network::default();
    let fakes = ["a:1", "b:1", "c:1"].map(|address| network.fake(address));
    // To learn is a call too.
    let client = network.configured(config(&["a:1", "b:1", "c:1"]).learn_nodes(false));
    for _ in 0..9 {
        client.enqueue(vec![NewItem::new("a", "1")]).await.unwrap();
    }
    assert_eq!(fakes.map(|fake| fake.enqueue.calls().len()), [3; 3]);
}

#[tokio::test(start_paused = true)]
async fn pages_of_topics_come_from_one_server() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    let client = network.client(&["a:1", "b:1"]);
    for _ in 0..4 {
        client.clone().active_topics(Default::default()).await.unwrap();
    }
    let calls = (a.topics.calls().len(), b.topics.calls().len());
    assert!(calls == (4, 0) || calls == (0, 4), "{calls:?}");
}

/// Two servers, and a client that has a delivery from each: `receipt-0` and `receipt-1`.
async fn deliveries() -> (Network, [std::sync::Arc<crate::testing::Fake>; 2], Client) {
    let network = Network::default();
    let fakes = ["a:1", "b:1"].map(|address| network.fake(address));
    for (number, fake) in fakes.iter().enumerate() {
        fake.dequeue.answer(v1::DequeueResponse { items: vec![item(number)] });
    }
    let client = network.configured(config(&["a:1", "b:1"]));
    for _ in 0..2 {
        assert_eq!(client.dequeue(DequeueCall::topic("a", 1)).await.unwrap().len(), 1);
    }
    (network, fakes, client)
}

const BOTH: [&str; 2] = ["receipt-1", "receipt-0"];

#[tokio::test(start_paused = true)]
async fn a_delivery_is_settled_where_it_came_from() {
    let (_network, [a, b], client) = deliveries().await;
    let both = || BOTH.map(str::to_owned).to_vec();
    for _ in 0..3 {
        assert!(client.extend_lease(both(), None).await.unwrap().iter().all(Result::is_ok));
    }
    let nacks = BOTH.map(|receipt| Nack::new(receipt, NackAction::Release(Duration::ZERO)));
    client.nack(nacks[..1].to_vec()).await.unwrap();
    client.ack(both()[1..].to_vec()).await.unwrap();
    let extended = |fake: &crate::testing::Fake| {
        let calls = fake.extend.calls().into_iter().flat_map(|call| call.extensions);
        calls.map(|extension| extension.receipt).collect::<Vec<_>>()
    };
    assert_eq!((extended(&a), extended(&b)), (vec!["receipt-0".into(); 3], vec!["receipt-1".into(); 3]));
    assert_eq!((a.ack.calls().len(), a.nack.calls().len()), (1, 0));
    assert_eq!((b.ack.calls().len(), b.nack.calls().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_delivery_is_settled_elsewhere_if_its_server_is_gone() {
    let (network, [a, b], client) = deliveries().await;
    network.cut("a:1", true);
    let answers = client.ack(BOTH.map(str::to_owned).to_vec()).await.unwrap();
    assert_eq!(answers, [Ok(()), Ok(())]);
    assert_eq!(a.ack.calls(), []);
    let mut acked: Vec<_> = b.ack.calls().into_iter().flat_map(|call| call.acks).collect();
    acked.sort_by(|a, b| a.receipt.cmp(&b.receipt));
    assert_eq!(acked.iter().map(|ack| ack.receipt.as_str()).collect::<Vec<_>>(), ["receipt-0", "receipt-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_producer_stays_with_one_server_while_it_works() {
    let network = Network::default();
    let fakes = ["a:1", "b:1"].map(|address| (address, network.fake(address)));
    let producer = Producer::start(network.client(&["a:1", "b:1"]), ProducerConfig::default());
    let send = async || producer.send(NewItem::new("a", "1")).await.unwrap().await.unwrap();
    for _ in 0..10 {
        send().await;
    }
    let stored = |fake: &crate::testing::Fake| fake.enqueue.calls().len();
    let (first, second) = match stored(&fakes[0].1) {
        10 => (&fakes[0], &fakes[1]),
        _ => (&fakes[1], &fakes[0]),
    };
    assert_eq!((stored(&first.1), stored(&second.1)), (10, 0));
    network.cut(first.0, true);
    for _ in 0..10 {
        send().await;
    }
    assert_eq!((stored(&first.1), stored(&second.1)), (10, 10));
    network.cut(first.0, false);
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        send().await;
    }
    assert_eq!((stored(&first.1), stored(&second.1)), (10, 20), "it stays where it is");
}
