//! Nack: what becomes of an item that was not done.

use std::time::Duration;

use forebay_engine::*;
use forebay_types::{Fate, Receipt, Schedule};
use tokio::time::Instant;

use crate::queue::{Queue, item};

const DELAY: Duration = Duration::from_millis(30);
/// The clock by which items are due may run so much ahead of the one that a test reads.
const SLEW: Duration = Duration::from_millis(1);

#[tokio::test]
async fn nacks_delays_and_dead_letters() {
    let queue = Queue::start(1).await;
    let mut first = item(0, "x");
    first.max_attempts = 2;
    first.schedule = Schedule::Delay(DELAY);
    let began = Instant::now();
    queue.put(vec![first]).await;
    let got = queue.get(1, 5_000).await;
    assert_eq!(got[0].attempt, 1);
    assert!(began.elapsed() >= DELAY - SLEW, "{:?}", began.elapsed());
    let nack =
        |receipt, action| NackOf { receipt, action, metadata: Some(b"m".to_vec()), reason: "no".into() };
    let nacks = vec![nack(got[0].receipt.unwrap(), NackAction::Release(Duration::ZERO))];
    queue.engine.nack("ns".into(), nacks, None).await.unwrap()[0].clone().unwrap();
    for attempt in [2, 3] {
        let got = queue.get(1, 5_000).await;
        assert_eq!((got[0].attempt, &got[0].body.metadata[..]), (attempt, &b"m"[..]));
        let nacks = vec![nack(got[0].receipt.unwrap(), NackAction::Fail(Some(Duration::from_millis(5))))];
        queue.engine.nack("ns".into(), nacks, None).await.unwrap()[0].clone().unwrap();
        if attempt == 3 {
            let lost = queue.ack(&got).await;
            assert_eq!(lost[0].as_ref().unwrap_err().fate, Some(Fate::Dead));
        }
    }
    assert!(queue.get(1, 20).await.is_empty());
    assert_eq!(queue.engine.status().await.unwrap().shards[0].dead, 1);
    queue.engine.stop().await;
}

#[tokio::test]
async fn a_made_up_receipt_tells_nothing_of_another_tenants_item() {
    let queue = Queue::start(1).await;
    let stored = queue.put(vec![item(1, "ready"), item(0, "leased"), item(0, "dead")]).await;
    let got = queue.get(2, 5_000).await;
    let dead = got.iter().find(|it| &it.body.payload[..] == b"dead").unwrap();
    let receipt = dead.receipt.unwrap();
    let nack = NackOf { receipt, action: NackAction::DeadLetter, metadata: None, reason: String::new() };
    queue.engine.nack("ns".into(), vec![nack], None).await.unwrap()[0].clone().unwrap();
    let fates = async |namespace: &str| {
        let made_up = |item: &EnqueueOutcome| Receipt { item: item.id, delivery: 9, nonce: 9 };
        let acks = stored.iter().map(made_up).collect();
        let answers = queue.engine.ack(namespace.into(), acks, None).await.unwrap();
        answers.into_iter().map(|answer| answer.unwrap_err().fate.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(fates("ns").await, [Fate::Waiting, Fate::Leased, Fate::Dead]);
    assert_eq!(fates("other").await, [Fate::Gone; 3]);
}
