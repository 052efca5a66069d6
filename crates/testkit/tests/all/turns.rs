//! The shards of one server commit small batches in turn, and wait for nothing else.

use std::time::Duration;

use forebay_engine::{Engine, EnqueueCall, NewItem, Settings};
use forebay_testkit::{FakeShards, NAMESPACE, fake::Faults, item};
use forebay_types::ShardId;
use tokio::time::Instant;

/// How long a commit takes in these tests.
const COMMIT: Duration = Duration::from_millis(10);

struct Queue {
    engine: Engine,
    shards: FakeShards,
}

impl Queue {
    /// Shards whose commits take [`COMMIT`], one at a time on each server.
    async fn start(servers: &[&str]) -> Self {
        let settings = Settings { batches_per_server: 1, batch_rows: 4, ..Settings::default() };
        Self::with(servers, settings, COMMIT).await
    }

    async fn with(servers: &[&str], settings: Settings, commit: Duration) -> Self {
        let shards = FakeShards::new(servers.len() as u32).await;
        for (db, server) in shards.dbs.iter().zip(servers) {
            db.lock().server = (*server).to_owned();
        }
        let engine = shards.start(settings).await;
        let queue = Self { engine, shards };
        // Creates topics and generations before anything is timed.
        for shard in 1..=servers.len() {
            queue.put(shard, 1).await;
        }
        for db in &queue.shards.dbs {
            let millis = commit.as_millis() as u64;
            db.lock().faults = Faults { commit_ms: (millis, millis), ..Faults::instant() };
        }
        queue
    }

    /// Enqueues items to one shard. Returns how long it took.
    async fn put(&self, shard: usize, items: usize) -> Duration {
        let item = NewItem { shard: Some(ShardId(shard as u32)), ..item("t") };
        let call =
            EnqueueCall { namespace: NAMESPACE.into(), items: vec![item; items], ..EnqueueCall::default() };
        let began = Instant::now();
        let results = self.engine.enqueue(call).await.unwrap();
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        began.elapsed()
    }
}

/// How many consecutive commits a call waited for. Everything else takes far less time.
fn commits(took: Duration) -> u128 {
    took.as_millis() / COMMIT.as_millis()
}

#[tokio::test(start_paused = true)]
async fn small_batches_of_one_server_are_committed_one_by_one_and_none_is_passed_over() {
    let queue = Queue::start(&["a", "a", "a", "b"]).await;
    let took = tokio::join!(queue.put(1, 1), queue.put(2, 1), queue.put(3, 1), queue.put(4, 1));
    let mut of_one = [commits(took.0), commits(took.1), commits(took.2)];
    of_one.sort_unstable();
    assert_eq!((of_one, commits(took.3)), ([1, 2, 3], 1));
    // A shard that always has something to commit does not block the others.
    let eager = async |from: Duration| {
        tokio::time::sleep(from).await;
        for _ in 0..20 {
            queue.put(1, 1).await;
        }
    };
    let patient = async {
        tokio::time::sleep(COMMIT / 2).await;
        queue.put(2, 1).await
    };
    let (.., took) = tokio::join!(eager(Duration::ZERO), eager(COMMIT / 4), patient);
    assert!(commits(took) <= 3, "{took:?}");
}

/// A fast server executes one short batch at a time, a slow one several, so that no shard waits long.
#[tokio::test(start_paused = true)]
async fn the_slower_a_server_the_more_short_batches_it_has_at_once() {
    for (commit, at_once) in [(1, 1), (2, 2), (4, 3), (30, 4)] {
        let commit = Duration::from_millis(commit);
        let queue = Queue::with(&["a", "a", "a"], Settings::default(), commit).await;
        // The last commit tells how long one takes.
        for shard in 1..=3 {
            queue.put(shard, 1).await;
        }
        let took = tokio::join!(queue.put(1, 1), queue.put(2, 1), queue.put(3, 1));
        let rounds = |took: Duration| took.as_millis() / commit.as_millis();
        let last = rounds(took.0).max(rounds(took.1)).max(rounds(took.2));
        assert_eq!(last, 3_u128.div_ceil(at_once), "{commit:?}: {took:?}");
    }
}

/// A batch of many rows gains little by waiting for a single other one.
#[tokio::test(start_paused = true)]
async fn a_batch_that_is_not_short_does_not_wait_for_one_other() {
    let queue = Queue::with(&["a", "a"], Settings::default(), Duration::from_millis(2)).await;
    let took = tokio::join!(queue.put(1, 1), queue.put(2, 64));
    assert_eq!((took.0.as_millis() / 2, took.1.as_millis() / 2), (1, 1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait() {
    let queue = Queue::start(&["a", "a"]).await;
    let (_, took) = tokio::join!(queue.put(1, 1), queue.put(2, 4));
    assert_eq!(commits(took), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_batch_delays_the_others_once_and_not_for_long() {
    let queue = Queue::start(&["a", "a"]).await;
    queue.shards.dbs[0].lock().faults.commit_ms = (60_000, 60_000);
    let others = async {
        let first = queue.put(2, 1).await;
        assert!((Duration::from_millis(50)..Duration::from_millis(150)).contains(&first), "{first:?}");
        for _ in 0..3 {
            let next = queue.put(2, 1).await;
            assert_eq!(commits(next), 1);
        }
    };
    tokio::select! {
        _ = queue.put(1, 1) => panic!("the stuck batch was committed"),
        () = others => {}
    }
}

/// How long it takes until an engine owns shards on these servers.
async fn taken_over(servers: &[&str]) -> Duration {
    let shards = FakeShards::new(servers.len() as u32).await;
    for (db, server) in shards.dbs.iter().zip(servers) {
        let state = &mut *db.lock();
        state.server = (*server).to_owned();
        state.faults = Faults { read_ms: (200, 200), ..Faults::instant() };
    }
    let began = Instant::now();
    shards.start(Settings::default()).await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn eight_shards_of_a_server_are_taken_over_at_a_time() {
    let eight = taken_over(&["a"; 8]).await;
    let spread = [["a"; 8], ["b"; 8], ["c"; 8]].concat();
    assert_eq!(taken_over(&spread).await, eight, "servers do not wait for each other");
    let of_one = taken_over(&["a"; 24]).await;
    assert!(of_one > eight * 2, "{of_one:?} for 24 shards, {eight:?} for 8");
}
