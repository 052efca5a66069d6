//! When a consumer ends because there is nothing to do.

use forebay_proto::v1;
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::*;
use crate::testing::{Fake, HeldItems, Network, Stock, item};

const SPAN: Duration = Duration::from_millis(200);

fn config() -> ConsumerConfig {
    ConsumerConfig { idle_exit: Some(SPAN), ..ConsumerConfig::new(["a"]) }
}

fn start(client: Client, config: ConsumerConfig, time: Duration) -> Consumer {
    Consumer::start(client, config, move |_: Delivery| async move {
        sleep(time).await;
        Outcome::Ack
    })
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_late_is_awaited_and_its_items_are_handled() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.hold(true);
    fake.dequeue.answer(v1::DequeueResponse { items: (0..4).map(item).collect() });
    let consumer = start(client, config(), SPAN * 3);
    fake.dequeue.seen(1).await;
    sleep(SPAN * 20).await;
    fake.dequeue.hold(false);
    let report = consumer.ended().await.unwrap();
    assert_eq!(report, ConsumerReport { acked: 4, ..ConsumerReport::default() });
}

#[tokio::test(start_paused = true)]
async fn it_ends_soon_after_the_last_item_and_each_server_is_asked_after_that() {
    let network = Network::default();
    let fakes = ["a:1", "b:1", "c:1"].map(|address| network.fake(address));
    *fakes[1].stock.lock().unwrap() = Some(Stock { numbers: 0..20, held: HeldItems::default() });
    let client = network.client(&["a:1", "b:1", "c:1"]);
    let started = Instant::now();
    let report = start(client, config().concurrency(4), SPAN).ended().await.unwrap();
    assert_eq!((report.acked, report.released), (20, 0));
    // Five rounds at least for the items. Then all are asked once more.
    let took = started.elapsed();
    assert!(took >= SPAN * 6 && took < SPAN * 30, "{took:?}");
    assert!(fakes.iter().all(|fake| fake.dequeue.calls().len() >= 2));
    let longest = fakes[0].dequeue.calls().iter().filter_map(|call| call.wait).map(|wait| wait.seconds).max();
    assert_eq!(longest, Some(0), "no poll waits for longer than the span");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_may_have_items() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.fail(Code::Unavailable, None, 10);
    let consumer = start(client, config(), SPAN);
    fake.dequeue.seen(11).await;
    assert_eq!(consumer.ended().await.unwrap(), ConsumerReport::default());
}

#[tokio::test(start_paused = true)]
async fn with_the_items_that_were_wanted_it_does_not_ask_again() {
    let (fake, client) = Fake::start().await;
    *fake.stock.lock().unwrap() = Some(Stock { numbers: 0..9, held: HeldItems::default() });
    let report = start(client, config().max_items(3), SPAN).ended().await.unwrap();
    assert_eq!(report.acked, 3);
    assert_eq!(fake.stock.lock().unwrap().as_ref().unwrap().numbers, 3..9);
}
