//! Outcomes, leases and the stop of a consumer, against a scripted server.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use forebay_proto::v1;
use tokio::{sync::Notify, time::Instant};

use super::*;
use crate::testing::{Fake, Stock, item, lease_lost};

fn items(numbers: std::ops::Range<usize>) -> v1::DequeueResponse {
    v1::DequeueResponse { items: numbers.map(item).collect() }
}

#[tokio::test(start_paused = true)]
async fn each_outcome_is_settled_and_acks_are_batched() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.answer(items(0..10));
    let consumer = Consumer::start(client, ConsumerConfig::new(["a"]), |delivery: Delivery| async move {
        match delivery.item.item_id.as_str() {
            "1-0" => Outcome::retry(Duration::from_secs(3), "not yet"),
            "1-1" => Outcome::reject("never"),
            "1-2" => Outcome::Release,
            "1-3" => panic!("as scripted"),
            _ => Outcome::Ack,
        }
    });
    fake.dequeue.seen(2).await;
    let report = consumer.stop().await.unwrap();
    assert_eq!((report.acked, report.retried, report.rejected, report.released), (6, 2, 1, 1));
    assert_eq!(fake.ack.calls().iter().map(|call| call.acks.len()).sum::<usize>(), 6);
    let mut nacks: Vec<_> = fake.nack.calls().into_iter().flat_map(|call| call.nacks).collect();
    nacks.sort_by(|a, b| a.receipt.cmp(&b.receipt));
    assert_eq!(nacks[0].delay.as_ref().map(|delay| delay.seconds), Some(3));
    assert!(nacks[1].dead_letter && nacks[1].reason == "never");
    assert!(nacks[2].release);
    assert!(!nacks[3].release && nacks[3].reason == "the handler panicked");
}

#[tokio::test(start_paused = true)]
async fn no_more_handlers_run_than_allowed() {
    let (fake, client) = Fake::start().await;
    for poll in 0..5 {
        fake.dequeue.answer(items(poll * 2..poll * 2 + 2));
    }
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    let config = ConsumerConfig::new(["a"]).concurrency(2);
    let consumer = Consumer::start(client, config, |_: Delivery| async {
        assert!(RUNNING.fetch_add(1, SeqCst) < 2);
        tokio::time::sleep(Duration::from_millis(10)).await;
        RUNNING.fetch_sub(1, SeqCst);
        Outcome::Ack
    });
    fake.dequeue.seen(6).await;
    assert_eq!(consumer.stop().await.unwrap(), ConsumerReport { acked: 10, ..Default::default() });
    let asked: Vec<_> = fake.dequeue.calls().iter().map(|call| call.demands[0].max_items).collect();
    assert!(asked.iter().all(|&items| items <= 2), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_items_are_taken_than_wanted() {
    let (fake, client) = Fake::start().await;
    *fake.stock.lock().unwrap() = Some(Stock { numbers: 0..10, held: Default::default() });
    let config = ConsumerConfig::new(["a", "b"]).concurrency(2).max_items(3);
    let consumer = Consumer::start(client, config, |_: Delivery| async { Outcome::Ack });
    while fake.ack.calls().iter().map(|call| call.acks.len()).sum::<usize>() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Long after any poll would have begun.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fake.stock.lock().unwrap().as_ref().unwrap().numbers, 3..10);
    assert_eq!(consumer.stop().await.unwrap().acked, 3);
    let asked = |call: &v1::DequeueRequest| call.demands.iter().map(|it| it.max_items).sum::<u32>();
    let asked: Vec<_> = fake.dequeue.calls().iter().map(asked).collect();
    assert!(asked.iter().all(|items| *items <= 2), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_extended_at_a_third() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.answer(items(0..1));
    let started = Instant::now();
    let config = ConsumerConfig::new(["a"]).lease(Duration::from_secs(60));
    let consumer = Consumer::start(client, config, |_: Delivery| async {
        tokio::time::sleep(Duration::from_secs(95)).await;
        Outcome::Ack
    });
    fake.extend.seen(1).await;
    let third = started.elapsed();
    assert!((Duration::from_secs(20)..=Duration::from_secs(26)).contains(&third), "{third:?}");
    let extension = &fake.extend.calls()[0].extensions[0];
    assert_eq!(extension.receipt, "receipt-0");
    assert_eq!(extension.lease_duration.as_ref().map(|lease| lease.seconds), Some(60));
    fake.extend.seen(4).await;
    fake.ack.seen(1).await;
    assert!(started.elapsed() < Duration::from_secs(97));
    assert_eq!(consumer.stop().await.unwrap().acked, 1);
    assert_eq!(fake.extend.calls().len(), 4, "an acked delivery is not extended");
}

#[tokio::test(start_paused = true)]
async fn a_handler_learns_that_its_lease_is_lost() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.answer(items(0..1));
    let gone = v1::ExtendLeaseResult { error: Some(lease_lost("waiting")), ..Default::default() };
    fake.extend.answer(v1::ExtendLeaseResponse { results: vec![gone] });
    let late = v1::SettleResult { error: Some(lease_lost("waiting")), ..Default::default() };
    fake.ack.answer(v1::AckResponse { results: vec![late] });
    let consumer = Consumer::start(client, ConsumerConfig::new(["a"]), |mut delivery: Delivery| async move {
        delivery.lost().await;
        assert!(delivery.is_lost());
        Outcome::Ack
    });
    fake.ack.seen(1).await;
    assert_eq!(consumer.stop().await.unwrap(), ConsumerReport { lost: 1, ..Default::default() });
    assert_eq!(fake.extend.calls().len(), 1, "a lost lease is not extended");
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_handlers_and_releases_those_that_do_not_end() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.answer(items(0..2));
    let begun = Arc::new(Notify::new());
    let config = ConsumerConfig { stop_grace: Duration::from_secs(5), ..ConsumerConfig::new(["a"]) };
    let consumer = Consumer::start(client, config, {
        let begun = begun.clone();
        move |delivery: Delivery| {
            let begun = begun.clone();
            async move {
                begun.notify_one();
                let stubborn = delivery.item.item_id == "1-1";
                tokio::time::sleep(Duration::from_secs(if stubborn { 3_600 } else { 1 })).await;
                Outcome::Ack
            }
        }
    });
    begun.notified().await;
    let stopped = Instant::now();
    let report = consumer.stop().await.unwrap();
    assert_eq!(report, ConsumerReport { acked: 1, released: 1, ..Default::default() });
    assert!(stopped.elapsed() < Duration::from_secs(7));
    let nack = fake.nack.calls().remove(0).nacks.remove(0);
    assert!(nack.release && nack.receipt == "receipt-1");
}

#[tokio::test(start_paused = true)]
async fn items_that_arrive_after_the_stop_are_released() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.hold(true);
    fake.dequeue.answer(items(0..3));
    let consumer = Consumer::start(client, ConsumerConfig::new(["a"]), |_: Delivery| async { Outcome::Ack });
    fake.dequeue.seen(1).await;
    let stop = tokio::spawn(consumer.stop());
    tokio::task::yield_now().await;
    fake.dequeue.hold(false);
    assert_eq!(stop.await.unwrap().unwrap(), ConsumerReport { released: 3, ..Default::default() });
}

#[tokio::test(start_paused = true)]
async fn a_refused_dequeue_ends_the_consumer() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.fail(Code::InvalidArgument, Some("INVALID_FIELD"), 1);
    let consumer = Consumer::start(client, ConsumerConfig::new(["?"]), |_: Delivery| async { Outcome::Ack });
    let error = consumer.ended().await.unwrap_err();
    assert_eq!(error.reason(), Some(crate::Reason::InvalidField));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_runs_until_something_happens_or_it_is_refused() {
    let (fake, client) = Fake::start().await;
    fake.dequeue.answer(items(0..1));
    let (handled, mut seen) = tokio::sync::mpsc::channel(1);
    let consumer = Consumer::start(client.clone(), ConsumerConfig::new(["a"]), move |_: Delivery| {
        let handled = handled.clone();
        async move {
            // The channel has room for the only item.
            let _ = handled.send(()).await;
            let metadata = Some("page 7".into());
            Outcome::Retry { delay: Duration::from_secs(1), reason: "half way".into(), metadata }
        }
    });
    let report = consumer.run_until(async { _ = seen.recv().await }).await.unwrap();
    assert_eq!(report, ConsumerReport { retried: 1, ..Default::default() });
    assert_eq!(fake.nack.calls()[0].nacks[0].metadata.as_deref(), Some(&b"page 7"[..]));

    fake.dequeue.fail(Code::InvalidArgument, Some("INVALID_FIELD"), 1);
    let consumer = Consumer::start(client, ConsumerConfig::new(["?"]), |_: Delivery| async { Outcome::Ack });
    let error = consumer.run_until(std::future::pending()).await.unwrap_err();
    assert_eq!(error.reason(), Some(crate::Reason::InvalidField));
}
