//! The engine over shards that fail in ways that do not pass: what it repeats has an end, and everybody gets
//! an answer.

use std::{sync::Arc, time::Duration};

use forebay_engine::{
    Delivered, Demand, DequeueCall, Engine, EnqueueCall, Enqueued, NewItem, Schedule, Settings,
};
use forebay_store::{ErrorClass, Shard};
use forebay_testkit::{
    fake::{Db, Dice, FakeShard, Faults, Journal, Process},
    sim::SimClock,
};
use forebay_types::{Body, DeliveryPolicy, Reason, Refusal, ShardId, Timestamp};
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// A running engine over one fake shard.
struct Queue {
    engine: Engine,
    db: Db,
}

impl Queue {
    async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    async fn with(settings: Settings) -> Self {
        let journal = Arc::new(Journal::new(Timestamp::from_micros(1_790_000_000_000_000), false));
        let db = Db::new(ShardId(1), journal.clone(), Dice::new(1));
        let shard = FakeShard::new(db.clone(), Process::new(1));
        shard.migrate().await.unwrap();
        let shards: Vec<(ShardId, Arc<dyn Shard>)> = vec![(ShardId(1), Arc::new(shard))];
        let clock = Arc::new(SimClock::new(journal, 0));
        let engine = Engine::start(settings, "here:1".into(), shards, clock, Arc::new(()), 7);
        engine.ready().await;
        Self { engine, db }
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
    async fn put(&self, topics: usize) -> Vec<Result<Enqueued, Refusal>> {
        let item = |topic: usize| NewItem {
            topic: topic.to_string().into(),
            priority: 0,
            body: Body { payload: "payload".into(), ..Body::default() },
            schedule: Schedule::Now,
            lease: Duration::from_secs(30),
            ttl: None,
            policy: DeliveryPolicy::AtLeastOnce,
            max_attempts: 16,
            dedupe_key: None,
            shard: Some(ShardId(1)),
        };
        let call =
            EnqueueCall { namespace: "ns".into(), items: (1..=topics).map(item).collect(), request_id: None };
        self.engine.enqueue(call).await.unwrap()
    }

    /// Takes items of so many topics, waiting for the first.
    async fn get(&self, topics: usize) -> Vec<Delivered> {
        let demand = |topic: usize| Demand { topic: topic.to_string().into(), max_items: 10 };
        let call = DequeueCall {
            namespace: "ns".into(),
            demands: (1..=topics).map(demand).collect(),
            wait: SECOND,
            lease: None,
            consumer: String::new(),
            max_bytes: 1 << 20,
        };
        match self.engine.dequeue(call).await {
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
        while self.db.lock().owners.len() < count {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// An error that does not pass ends the term: callers hear what happened, and the shard is loaded again.
async fn is_given_up(class: ErrorClass, within: Duration, commits_max: u64) {
    let queue = Queue::start().await;
    queue.put(1).await.pop().unwrap().unwrap();
    queue.fail(class);
    let before = queue.db.lock().commits;
    let refused = timeout(within, queue.put(1)).await.expect("an answer").pop().unwrap().unwrap_err();
    assert_eq!(refused.reason, Reason::ShardUnavailable, "nothing was stored: {refused:?}");
    let commits = queue.db.lock().commits - before;
    assert!((2..=commits_max).contains(&commits), "{commits} commits");
    queue.heal();
    queue.wait_for_owners(2).await;
    queue.put(1).await.pop().unwrap().unwrap();
    assert_eq!(queue.get(1).await.len(), 2, "what was refused is not there");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_not_known_is_not_repeated_for_ever() {
    is_given_up(ErrorClass::Unrecognized, 5 * SECOND, 8).await;
    is_given_up(ErrorClass::Schema, 5 * SECOND, 8).await;
    is_given_up(ErrorClass::Unavailable, 5 * SECOND, 8).await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_not_repeated_for_ever() {
    is_given_up(ErrorClass::Replay, 40 * SECOND, 32).await;
}

/// A connection that is lost comes back: the batch waits for that.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_waited_for() {
    let queue = Queue::start().await;
    queue.fail(ErrorClass::Disconnected);
    let put = queue.put(1);
    tokio::pin!(put);
    assert!(timeout(40 * SECOND, &mut put).await.is_err(), "answered without a database");
    queue.heal();
    put.await.pop().unwrap().unwrap();
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
