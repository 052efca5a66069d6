//! The engine over shards that fail in ways that do not pass: what it repeats has an end, and everybody gets
//! an answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use forebay_engine::{
    BreakerPhase, DeliveredItem, DequeueCall, Engine, EnqueueCall, EnqueueOutcome, NewItem, Settings,
    SettlementResult, ShardState,
};
use forebay_store::ErrorClass;
use forebay_testkit::{
    FakeShards, NAMESPACE, dequeue,
    fake::{Db, Faults, Process},
    item as item_of,
    sim::SimClock,
};
use forebay_types::{Body, Clock, ItemId, Monotonic, Reason, Receipt, Refusal, Seq, ShardId, Timestamp};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

const SECOND: Duration = Duration::from_secs(1);

/// A running engine over fake shards.
struct Queue {
    engine: Engine,
    /// The first shard.
    db: Db,
}

impl Queue {
    async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    async fn with(settings: Settings) -> Self {
        Self::over(1, settings, |clock| Arc::new(clock)).await
    }

    /// Over so many shards, the first of which may become sick.
    async fn over(shards: u32, settings: Settings, wrap: impl FnOnce(SimClock) -> Arc<dyn Clock>) -> Self {
        let mut shards = FakeShards::new(shards).await;
        let clock = wrap(shards.clock(Duration::ZERO));
        Self { engine: shards.start_with(settings, clock).await, db: shards.dbs.remove(0) }
    }

    /// Every batch fails with this error from now on.
    fn fail(&self, class: ErrorClass) {
        self.db.lock().faults = Faults { rolled_back: 1_000, classes: vec![class], ..Faults::none() };
    }

    /// The shard is well again.
    fn heal(&self) {
        self.db.lock().faults = Faults::none();
    }

    /// Enqueues an item to each of so many topics.
    async fn put(&self, topics: usize) -> Vec<Result<EnqueueOutcome, Refusal>> {
        self.put_items((1..=topics).map(item).collect()).await
    }

    async fn put_items(&self, items: Vec<NewItem>) -> Vec<Result<EnqueueOutcome, Refusal>> {
        let call = EnqueueCall { namespace: NAMESPACE.into(), items, ..EnqueueCall::default() };
        self.engine.enqueue(call).await.unwrap()
    }

    /// Takes items of so many topics, waiting for the first.
    async fn get(&self, topics: usize) -> Vec<DeliveredItem> {
        match self.engine.dequeue(call(topics)).await {
            Ok(items) => items,
            Err(refused) => {
                assert_eq!(refused.reason, Reason::ShardUnavailable, "{refused:?}");
                sleep(SECOND / 10).await;
                Vec::new()
            }
        }
    }

    /// Waits until the shard was taken over so many times.
    async fn wait_for_owners(&self, count: usize) {
        let owns = async || self.engine.status().await.unwrap().shards[0].state == ShardState::Owned;
        while self.db.lock().owners.len() < count || !owns().await {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

fn item(topic: usize) -> NewItem {
    let body = Body { payload: "payload".into(), ..Body::default() };
    NewItem { body, shard: Some(ShardId(1)), ..item_of(&topic.to_string()) }
}

/// Asks for items of so many topics.
fn call(topics: usize) -> DequeueCall {
    let topics: Vec<String> = (1..=topics).map(|topic| topic.to_string()).collect();
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    DequeueCall { wait: SECOND, ..dequeue(&topics, 10) }
}

/// An error that does not pass ends the term: callers hear what happened, and the shard is loaded again.
async fn is_given_up(class: ErrorClass, within: Duration, commits_max: u64, told: Reason) {
    let queue = Queue::start().await;
    queue.put(1).await.pop().unwrap().unwrap();
    queue.fail(class);
    let before = queue.db.lock().commits;
    let refused = timeout(within, queue.put(1)).await.expect("an answer").pop().unwrap().unwrap_err();
    assert_eq!(refused.reason, told, "{refused:?}");
    if told == Reason::OutcomeUnknown {
        // It takes longer than callers wait.
        timeout(within, queue.wait_for_owners(2)).await.expect("an end");
    }
    let commits = queue.db.lock().commits - before;
    assert!((2..=commits_max).contains(&commits), "{commits} commits");
    queue.heal();
    queue.wait_for_owners(2).await;
    queue.put(1).await.pop().unwrap().unwrap();
    assert_eq!(queue.get(1).await.len(), 2, "what was refused is not there");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_not_known_is_not_repeated_for_ever() {
    is_given_up(ErrorClass::Unrecognized, 5 * SECOND, 8, Reason::ShardUnavailable).await;
    is_given_up(ErrorClass::Schema, 5 * SECOND, 8, Reason::ShardUnavailable).await;
    is_given_up(ErrorClass::Unavailable, 5 * SECOND, 8, Reason::ShardUnavailable).await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_not_repeated_for_ever() {
    is_given_up(ErrorClass::Replay, 40 * SECOND, 32, Reason::OutcomeUnknown).await;
}

/// Two nodes. The commits of the first hang, although its server answers everything else.
#[tokio::test(start_paused = true)]
async fn a_shard_whose_batch_is_stuck_is_left_to_another_node() {
    let shards = FakeShards::new(1).await;
    let begin = |number, address| {
        let clock = Arc::new(shards.clock(Duration::ZERO));
        shards.start_as(&Process::new(number), address, Settings::default(), clock)
    };
    let first = begin(1, "a:1");
    first.ready().await;
    let second = begin(2, "b:1");
    let db = &shards.dbs[0];
    let slow = |millis| db.lock().faults = Faults { commit_ms: (millis, millis), ..Faults::none() };
    slow(3_600_000);
    let began = Instant::now();
    let call = EnqueueCall { namespace: NAMESPACE.into(), items: vec![item(1)], ..EnqueueCall::default() };
    let answer = first.enqueue(call).await.unwrap().remove(0);
    assert_eq!(answer.unwrap_err().reason, Reason::OutcomeUnknown);
    assert!((2..3).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    sleep(21 * SECOND / 2).await;
    assert!(first.sights().await.unwrap()[0].stuck);
    second.ready().await;
    assert!(began.elapsed() < 17 * SECOND, "{:?}: the first one leaves it to others", began.elapsed());
    slow(1);
    sleep(6 * SECOND).await;
    assert!(!first.sights().await.unwrap()[0].owned);
    // A batch that meets conflicts is not stuck: it would meet them at any node.
    db.lock().faults = Faults { rolled_back: 1_000, classes: vec![ErrorClass::Replay], ..Faults::none() };
    let call = EnqueueCall { namespace: NAMESPACE.into(), items: vec![item(2)], ..EnqueueCall::default() };
    let stored = tokio::spawn({
        let second = second.clone();
        async move { second.enqueue(call).await.unwrap().remove(0) }
    });
    sleep(12 * SECOND).await;
    assert!(second.sights().await.unwrap()[0].owned);
    slow(1);
    assert_eq!(stored.await.unwrap().unwrap_err().reason, Reason::OutcomeUnknown);
    sleep(10 * SECOND).await;
    assert_eq!(db.lock().tables.items.len(), 1, "the batch went on");
}

/// A connection that is lost comes back: the batch waits for that, and its callers do not.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_waited_for() {
    let queue = Queue::start().await;
    // Nothing else is lost, or others would own the shard meanwhile.
    queue.db.lock().faults = Faults {
        rolled_back: 1_000,
        read_fails: 1_000,
        classes: vec![ErrorClass::Disconnected],
        ..Faults::none()
    };
    let told = timeout(3 * SECOND, queue.put(1)).await.expect("an answer").pop().unwrap().unwrap_err();
    assert_eq!(told.reason, Reason::OutcomeUnknown);
    sleep(40 * SECOND).await;
    queue.heal();
    let stored = async { while queue.get(1).await.is_empty() {} };
    timeout(20 * SECOND, stored).await.expect("the batch went on");
    assert_eq!(queue.db.lock().owners.len(), 1);
}

/// Items that somebody deleted by hand are looked for once each. Then the shard is loaded again, and what is
/// left of it is delivered.
#[tokio::test(start_paused = true)]
async fn an_item_that_vanished_is_looked_for_once() {
    let settings = Settings { index_bytes: 0, ..Settings::default() };
    let queue = Queue::with(settings).await;
    queue.put(6).await.into_iter().for_each(|result| assert!(result.is_ok()));
    {
        let state = &mut *queue.db.lock();
        state.tables.items.retain(|seq, _| seq.0 > 4);
    }
    let before = queue.db.lock().operations;
    let items = timeout(10 * SECOND, async {
        let mut items = Vec::new();
        while items.len() < 2 {
            items.extend(queue.get(6).await);
        }
        items
    });
    let items = items.await.expect("what is there is delivered");
    let mut left: Vec<u64> = items.iter().map(|item| item.id.seq.0).collect();
    left.sort_unstable();
    assert_eq!(left, [5, 6]);
    queue.wait_for_owners(2).await;
    let operations = queue.db.lock().operations - before;
    assert!(operations < 100, "{operations} operations");
}

/// A generation that can't be dropped stays, and no other one is created because of it.
#[tokio::test(start_paused = true)]
async fn a_generation_that_can_not_be_dropped_makes_no_new_ones() {
    let window = 60 * SECOND;
    let queue = Queue::with(Settings { dedupe_window: window, ..Settings::default() }).await;
    queue.put(1).await.pop().unwrap().unwrap();
    queue.db.lock().faults.drop_fails = 1_000;
    sleep(20 * window).await;
    let generations = queue.db.lock().tables.generations.len();
    assert!((15..=23).contains(&generations), "{generations} generations after 20 spans");
    queue.heal();
    sleep(window).await;
    let generations = queue.db.lock().tables.generations.len();
    assert!(generations <= 4, "{generations} generations");
}

/// A clock that stalls the event loop once: nobody else asks for the time of day.
struct StallingClock {
    clock: SimClock,
    stalls: Arc<AtomicBool>,
}

impl Clock for StallingClock {
    #[expect(clippy::disallowed_methods, reason = "the stall is what is tested")]
    fn wall(&self) -> Timestamp {
        if self.stalls.swap(false, Ordering::Relaxed) {
            std::thread::sleep(SECOND * 3 / 2);
        }
        self.clock.wall()
    }

    fn monotonic(&self) -> Monotonic {
        self.clock.monotonic()
    }
}

/// A commit takes as long as its shard's task says, however late the event loop hears of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stall_of_the_event_loop_is_not_a_slow_commit() {
    let stalls = Arc::new(AtomicBool::new(false));
    let of_clock = stalls.clone();
    let wrap = |clock| -> Arc<dyn Clock> { Arc::new(StallingClock { clock, stalls: of_clock }) };
    let queue = Queue::over(1, Settings::default(), wrap).await;
    queue.put(1).await.pop().unwrap().unwrap();
    queue.db.lock().faults.commit_ms = (300, 300);
    let commits = queue.db.lock().commits;
    let stalled = async {
        while queue.db.lock().commits == commits {
            sleep(Duration::from_millis(5)).await;
        }
        stalls.store(true, Ordering::Relaxed);
        queue.engine.status().await.unwrap()
    };
    let (put, _) = tokio::join!(queue.put(1), stalled);
    put.into_iter().for_each(|result| assert!(result.is_ok()));
    assert!(!stalls.load(Ordering::Relaxed), "the loop was stalled");
    let status = queue.engine.status().await.unwrap();
    assert_eq!(status.shards[0].breaker, BreakerPhase::Closed);
    let commit = Duration::from_micros(status.shards[0].commit_micros);
    assert!((SECOND / 4..SECOND).contains(&commit), "{commit:?}");
}

/// Polls of a shard whose breaker lets it through again are served then, and not with the next event.
#[tokio::test(start_paused = true)]
async fn a_poll_is_served_when_a_breaker_lets_a_shard_through() {
    let settings = Settings { shard_lease: 400 * SECOND, ..Settings::default() };
    let queue = Queue::over(2, settings, |clock| Arc::new(clock)).await;
    queue.put(1).await.pop().unwrap().unwrap();
    queue.db.lock().faults.commit_ms = (3_000, 3_000);
    let late = async {
        sleep(2 * SECOND).await;
        queue.heal();
        let began = Instant::now();
        let call = queue.engine.dequeue(DequeueCall { wait: 60 * SECOND, ..call(1) });
        assert_eq!(call.await.unwrap().len(), 1);
        began.elapsed()
    };
    let (put, took) = tokio::join!(queue.put_items(vec![item(9)]), late);
    let unknown = |result: Result<_, Refusal>| result.unwrap_err().reason == Reason::OutcomeUnknown;
    assert!(put.into_iter().all(unknown));
    assert!(took < 3 * SECOND, "{took:?}");
}

/// Dequeues and enqueues are refused, and may try a few times a second. Acks are committed meanwhile.
#[tokio::test(start_paused = true)]
async fn a_full_disk_leaves_acks_through_and_is_tried_with_pauses() {
    let queue = Queue::start().await;
    queue.put(3).await.into_iter().for_each(|result| assert!(result.is_ok()));
    let mut taken = queue.get(2).await;
    let full = Faults { disk_full: true, disk_full_for_leases: true, ..Faults::none() };
    queue.db.lock().faults = full;
    let refused = queue.put(1).await.pop().unwrap().unwrap_err();
    assert_eq!(refused.reason, Reason::DiskFull);
    let before = queue.db.lock().commits;
    let consuming = async {
        let mut refusals = 0;
        loop {
            match queue.engine.dequeue(DequeueCall { wait: 60 * SECOND, ..call(3) }).await {
                Ok(items) => return (items, refusals),
                Err(refused) => assert_eq!(refused.reason, Reason::DiskFull),
            }
            refusals += 1;
            sleep(SECOND / 20).await;
        }
    };
    let acking = async {
        for _ in 0..2 {
            sleep(3 * SECOND / 2).await;
            let acks = vec![taken.pop().unwrap().receipt.unwrap()];
            let began = Instant::now();
            let settled = queue.engine.ack(NAMESPACE.into(), acks, None).await.unwrap();
            assert!(settled[0].is_ok() && began.elapsed() < SECOND / 10, "{settled:?}");
        }
        let commits = queue.db.lock().commits - before;
        assert!(commits < 30, "{commits} commits in 3 s");
        queue.heal();
    };
    let consuming = timeout(60 * SECOND, consuming);
    let (delivered, ()) = tokio::join!(consuming, acking);
    let (items, refusals) = delivered.expect("an end");
    assert_eq!(items.len(), 1, "it is delivered once there is room");
    assert!(refusals > 20, "{refusals} refusals in 3 s");
    let stored = timeout(3 * SECOND, async { while queue.put(1).await.pop().unwrap().is_err() {} });
    stored.await.expect("new items are taken again");
}

/// Even a batch of acks alone is not repeated without a pause.
#[tokio::test(start_paused = true)]
async fn a_disk_without_room_for_acks_is_tried_with_pauses() {
    let queue = Queue::start().await;
    queue.put(1).await.pop().unwrap().unwrap();
    let acks = vec![queue.get(1).await.pop().unwrap().receipt.unwrap()];
    queue.fail(ErrorClass::DiskFull);
    let before = queue.db.lock().commits;
    let ack = queue.engine.ack(NAMESPACE.into(), acks, None);
    let healing = async {
        sleep(3 * SECOND).await;
        let commits = queue.db.lock().commits - before;
        assert!((4..20).contains(&commits), "{commits} commits in 3 s");
        queue.heal();
    };
    let (settled, ()) = tokio::join!(ack, healing);
    assert!(settled.unwrap()[0].is_ok(), "it waited, and is committed");
}

/// Stale acks are looked up many at a time, and keep no other read waiting.
#[tokio::test(start_paused = true)]
async fn many_stale_acks_are_few_reads() {
    let queue = Queue::with(Settings { index_bytes: 0, ..Settings::default() }).await;
    queue.put(1).await.pop().unwrap().unwrap();
    let stale = queue.get(1).await.pop().unwrap().receipt.unwrap();
    let stale = Receipt { nonce: stale.nonce ^ 1, item: ItemId { seq: Seq(9_999), ..stale.item }, ..stale };
    queue.put_items(vec![item(2)]).await.pop().unwrap().unwrap();
    queue.db.lock().faults.read_ms = (200, 200);
    let before = queue.db.lock().operations;
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let engine = queue.engine.clone();
        calls.spawn(async move { engine.ack("hostile".into(), vec![stale; 100], None).await });
    }
    sleep(Duration::from_millis(10)).await;
    let began = Instant::now();
    assert_eq!(queue.get(2).await.len(), 1);
    assert!(began.elapsed() < SECOND, "its body was read beside them: {:?}", began.elapsed());
    while let Some(settled) = calls.join_next().await {
        let settled = settled.unwrap().unwrap();
        let lost = |one: &&SettlementResult| one.as_ref().unwrap_err().reason == Reason::LeaseLost;
        assert_eq!(settled.iter().find(|one| !lost(one)), None);
    }
    let operations = queue.db.lock().operations - before;
    assert!(operations < 60, "{operations} operations for 5,000 stale acks");
    assert_eq!(queue.engine.status().await.unwrap().shards[0].breaker, BreakerPhase::Closed);
}
