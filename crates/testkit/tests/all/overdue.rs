//! One of two shards does not answer. Callers that have items of both hear what the other one did, and nobody
//! waits for the sick one.

use std::{sync::Arc, time::Duration};

use forebay_engine::{
    AnswerBy, BreakerPhase, DequeueCall, Engine, EnqueueCall, EnqueueOutcome, NewItem, Settings,
};
use forebay_testkit::{FakeShards, NAMESPACE, dequeue, fake::Faults, item};
use forebay_types::{Reason, Receipt, Refusal, ShardId};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

struct Bench {
    shards: FakeShards,
    engine: Arc<Engine>,
}

impl Bench {
    async fn start() -> Self {
        let shards = FakeShards::new(2).await;
        let engine = Arc::new(shards.start(Settings::default()).await);
        Self { shards, engine }
    }

    /// Each commit of the first shard takes so long.
    fn slow(&self, millis: u64) {
        self.shards.dbs[0].lock().faults = Faults { commit_ms: (millis, millis), ..Faults::none() };
    }

    /// How many items the shards hold.
    fn stored(&self) -> [usize; 2] {
        [0, 1].map(|shard: usize| self.shards.dbs[shard].lock().tables.items.len())
    }

    async fn breaker(&self) -> BreakerPhase {
        self.engine.status().await.unwrap().shards[0].breaker
    }

    /// Leases an item of each shard.
    async fn lease(&self) -> [Receipt; 2] {
        for shard in [1, 2] {
            pinned(&self.engine, shard).await.unwrap();
        }
        let items = self.engine.dequeue(dequeue(&["t"], 2)).await.unwrap();
        [1, 2].map(|shard| {
            let of_shard = items.iter().find(|item| item.id.shard == ShardId(shard));
            of_shard.and_then(|item| item.receipt).unwrap()
        })
    }
}

async fn enqueue(
    engine: &Engine,
    item: NewItem,
    request_id: Option<&str>,
) -> Result<EnqueueOutcome, Refusal> {
    let request_id = request_id.map(str::to_owned);
    let call =
        EnqueueCall { namespace: NAMESPACE.into(), items: vec![item], request_id, ..EnqueueCall::default() };
    engine.enqueue(call).await?.remove(0)
}

async fn pinned(engine: &Engine, shard: u32) -> Result<EnqueueOutcome, Refusal> {
    enqueue(engine, NewItem { shard: Some(ShardId(shard)), ..item("t") }, None).await
}

/// Acks deliveries in one call. Returns what each was answered, and after how long.
async fn ack(engine: &Engine, receipts: Vec<Receipt>) -> (Vec<Option<Reason>>, Duration) {
    let began = Instant::now();
    let answers = engine.ack(NAMESPACE.into(), receipts, None).await.unwrap();
    let reasons = answers.into_iter().map(|answer| answer.err().map(|refusal| refusal.reason)).collect();
    (reasons, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_settlement_of_two_shards_is_answered_beside_one_that_does_not_answer() {
    let bench = Bench::start().await;
    let (first, second) = (bench.lease().await, bench.lease().await);
    bench.slow(8_000);
    let sent = tokio::spawn({
        let engine = bench.engine.clone();
        async move { ack(&engine, first.to_vec()).await }
    });
    sleep(SECOND / 2).await;
    let (behind, took) = ack(&bench.engine, second.to_vec()).await;
    assert_eq!(behind, [Some(Reason::ShardUnavailable), None], "it was not sent");
    assert!(took < 2 * SECOND, "{took:?}");
    let (sent, took) = sent.await.unwrap();
    assert_eq!(sent, [Some(Reason::OutcomeUnknown), None]);
    assert!((2 * SECOND..3 * SECOND).contains(&took), "{took:?}");
    // And so are those that come later.
    let (later, took) = ack(&bench.engine, vec![second[0]]).await;
    assert_eq!(later, [Some(Reason::ShardUnavailable)]);
    assert!(took <= SECOND, "{took:?}");
    bench.slow(1);
    sleep(10 * SECOND).await;
    assert_eq!(ack(&bench.engine, vec![first[0]]).await.0, [Some(Reason::LeaseLost)], "it was acked");
    assert_eq!(ack(&bench.engine, vec![second[0]]).await.0, [None], "it was not");
    assert_eq!(bench.stored(), [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_enqueue_without_an_answer_is_unknown_after_two_seconds_and_its_repeat_finds_it() {
    let bench = Bench::start().await;
    bench.slow(8_000);
    let mut calls = Vec::new();
    for number in 0..20 {
        let (engine, id) = (bench.engine.clone(), number.to_string());
        calls.push(tokio::spawn(async move {
            let began = Instant::now();
            (enqueue(&engine, item("t"), Some(&id)).await, began.elapsed(), id)
        }));
    }
    let mut unknown = Vec::new();
    for call in calls {
        let (answer, took, id) = call.await.unwrap();
        assert!(took < 3 * SECOND, "{answer:?} after {took:?}");
        if answer.is_err_and(|refusal| refusal.reason == Reason::OutcomeUnknown) {
            unknown.push(id);
        }
    }
    assert!(!unknown.is_empty(), "no call was in the batch");
    let began = Instant::now();
    let told = enqueue(&bench.engine, item("t"), Some(&unknown[0])).await.unwrap_err();
    assert_eq!((told.reason, began.elapsed() < SECOND), (Reason::ShardUnavailable, true));
    bench.slow(1);
    sleep(10 * SECOND).await;
    let stored = bench.stored()[0];
    for id in &unknown {
        enqueue(&bench.engine, item("t"), Some(id)).await.unwrap();
    }
    assert_eq!(bench.stored()[0], stored, "they were stored once");
    assert!(stored >= unknown.len());
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_goes_to_another_shard() {
    let bench = Bench::start().await;
    bench.slow(8_000);
    let mut calls = Vec::new();
    for number in 0..40 {
        let engine = bench.engine.clone();
        calls.push(tokio::spawn(async move {
            let began = Instant::now();
            (enqueue(&engine, item(&format!("t{number}")), None).await, began.elapsed())
        }));
        sleep(Duration::from_millis(5)).await;
    }
    let mut unknown = 0;
    for call in calls {
        let (answer, took) = call.await.unwrap();
        assert!(took < 3 * SECOND, "{took:?}");
        match answer {
            Ok(stored) => assert_eq!(stored.id.shard, ShardId(2)),
            Err(refusal) => {
                assert_eq!(refusal.reason, Reason::OutcomeUnknown, "{refusal:?}");
                unknown += 1;
            }
        }
    }
    assert!((1..20).contains(&unknown), "{unknown} of 40 were in the batch");
    assert_eq!(bench.stored(), [0, 40 - unknown]);
}

#[tokio::test(start_paused = true)]
async fn a_poll_is_served_by_the_other_shard_and_what_was_leased_for_it_comes_back() {
    let bench = Bench::start().await;
    let urgent = NewItem { shard: Some(ShardId(1)), priority: -1, ..item("t") };
    enqueue(&bench.engine, urgent, None).await.unwrap();
    pinned(&bench.engine, 2).await.unwrap();
    bench.slow(8_000);
    let began = Instant::now();
    let call = DequeueCall { wait: 20 * SECOND, ..dequeue(&["t"], 1) };
    let items = bench.engine.dequeue(call).await.unwrap();
    assert_eq!(items.iter().map(|item| item.id.shard).collect::<Vec<_>>(), [ShardId(2)]);
    assert!((2 * SECOND..3 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
    bench.slow(1);
    sleep(10 * SECOND).await;
    let back = bench.engine.dequeue(dequeue(&["t"], 1)).await.unwrap();
    assert_eq!((back[0].id.shard, back[0].failures), (ShardId(1), 0), "nobody has received it");
}

/// While its commits are too slow, the shard is probed again and again. No call is.
#[tokio::test(start_paused = true)]
async fn no_caller_is_a_probe() {
    let bench = Bench::start().await;
    bench.slow(1_500);
    pinned(&bench.engine, 1).await.unwrap();
    assert_eq!(bench.breaker().await, BreakerPhase::Open);
    for _ in 0..100 {
        let began = Instant::now();
        assert_eq!(pinned(&bench.engine, 1).await.unwrap_err().reason, Reason::ShardUnavailable);
        assert!(began.elapsed() < SECOND / 10);
        sleep(SECOND / 10).await;
    }
    let commits = bench.shards.dbs[0].lock().commits;
    assert!((3..8).contains(&commits), "{commits} commits in ten seconds");
    bench.slow(1);
    sleep(4 * SECOND).await;
    assert_eq!(bench.breaker().await, BreakerPhase::Closed, "nobody had to call");
    pinned(&bench.engine, 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_with_what_is_known_before_its_deadline() {
    let bench = Bench::start().await;
    let leased = bench.lease().await;
    bench.slow(1_000);
    let by = AnswerBy(Instant::now() + SECOND / 2);
    let (answers, took) = by.around(ack(&bench.engine, leased.to_vec())).await;
    assert_eq!(answers, [Some(Reason::OutcomeUnknown), None]);
    assert!((SECOND / 2..SECOND * 6 / 10).contains(&took), "{took:?}");
    let by = AnswerBy(Instant::now() + SECOND / 4);
    let told = by.around(pinned(&bench.engine, 1)).await.unwrap_err();
    assert_eq!(told.reason, Reason::OutcomeUnknown);
    bench.slow(1);
    sleep(10 * SECOND).await;
    assert_eq!(bench.stored(), [1, 0], "both took effect");
    bench.engine.stop().await;
}
