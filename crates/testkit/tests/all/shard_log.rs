//! Lines of the log on a shard that does not answer, is lost, or is waited for: each change once, with the
//! shard, where it is, and how long it took.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use forebay_engine::{Engine, EnqueueCall, NewItem, Settings};
use forebay_store::ErrorClass;
use forebay_testkit::{
    FakeShards, NAMESPACE,
    fake::{Faults, Life, Process},
    item,
};
use forebay_types::{Reason, Refusal, ShardId};
use tokio::time::sleep;
use tracing::subscriber::DefaultGuard;

const SECOND: Duration = Duration::from_secs(1);

/// Log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn capture() -> (Self, DefaultGuard) {
        let log = Self::default();
        let of_writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || of_writer.clone())
            .with_ansi(false)
            .with_max_level(tracing::Level::INFO)
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The one line that has this text. Fails if there are several, or none.
    #[track_caller]
    fn once(&self, text: &str) -> String {
        self.times(1, text).remove(0)
    }

    #[track_caller]
    fn times(&self, times: usize, text: &str) -> Vec<String> {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let found: Vec<String> = log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
        assert_eq!(found.len(), times, "{text:?} in:\n{log}");
        found
    }

    #[track_caller]
    fn never(&self, text: &str) {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        assert!(!log.contains(text), "{text:?} in:\n{log}");
    }
}

async fn put(engine: &Engine) -> bool {
    let call = EnqueueCall { namespace: NAMESPACE.into(), items: vec![item("t")], ..EnqueueCall::default() };
    engine.enqueue(call).await.unwrap().pop().unwrap().is_ok()
}

#[tokio::test(start_paused = true)]
async fn an_idle_shard_that_goes_away_and_comes_back_is_said_once_each() {
    let (log, _guard) = Log::capture();
    let shards = FakeShards::new(1).await;
    let engine = shards.start(Settings::default()).await;
    sleep(5 * SECOND).await;
    log.never("WARN");
    shards.dbs[0].lock().faults.down = true;
    sleep(20 * SECOND).await;
    let silent = log.once("shard 1 (memory-1) does not answer: renewal: connection lost");
    assert!(silent.contains(" WARN "), "{silent}");
    let opened = log.once("the breaker of shard 1 (memory-1) opened: renewal: connection lost");
    assert!(opened.contains(" WARN "), "{opened}");
    log.never("again");
    shards.dbs[0].lock().faults = Faults::none();
    sleep(30 * SECOND).await;
    log.once("shard 1 (memory-1) answers again after 19.");
    // Nothing was committed: it closes when nothing has failed for ten seconds.
    log.once("the breaker of shard 1 (memory-1) closed after ");
    log.once("does not answer");
    assert!(put(&engine).await);
}

/// Once each time, also where the shard is taken over at the first answer in between.
#[tokio::test(start_paused = true)]
async fn a_server_that_lets_nobody_take_its_shards_is_said_each_time() {
    let (log, _guard) = Log::capture();
    let shards = FakeShards::new(1).await;
    let set = |faults| shards.dbs[0].lock().faults = faults;
    set(Faults { down: true, ..Faults::none() });
    let engine = shards.start_as(
        &Process::new(1),
        "here:1",
        Settings::default(),
        Arc::new(shards.clock(Duration::ZERO)),
    );
    sleep(20 * SECOND).await;
    let away = log.once("cannot take over shards of memory-1: ");
    assert!(away.contains(" WARN "), "{away}");
    set(Faults::none());
    engine.ready().await;
    assert!(put(&engine).await);

    // Its batches fail until the shard is taken over anew, and that fails too.
    let classes = vec![ErrorClass::Unavailable];
    set(Faults { rolled_back: 1_000, classes, read_fails: 1_000, take_over_fails: 1_000, ..Faults::none() });
    let refused = put(&engine).await;
    assert!(!refused);
    sleep(20 * SECOND).await;
    log.times(2, "cannot take over shards of memory-1: ");
    log.never("cannot take over shard 1");
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_hangs_is_said_within_seconds() {
    let (log, _guard) = Log::capture();
    let shards = FakeShards::new(1).await;
    let _engine = shards.start(Settings::default()).await;
    shards.dbs[0].lock().faults.read_ms = (30_000, 30_000);
    sleep(2 * SECOND).await;
    log.once("shard 1 (memory-1) does not answer: no answer within a second");
    shards.dbs[0].lock().faults = Faults::none();
    sleep(30 * SECOND).await;
    log.once("shard 1 (memory-1) answers again after ");
}

#[tokio::test(start_paused = true)]
async fn a_shard_whose_answers_are_all_late_is_said_once() {
    let (log, _guard) = Log::capture();
    let shards = FakeShards::new(1).await;
    let _engine = shards.start(Settings::default()).await;
    shards.dbs[0].lock().faults.read_ms = (2_000, 2_000);
    sleep(60 * SECOND).await;
    log.once("shard 1 (memory-1) does not answer: no answer within a second");
    log.never("answers again");
    shards.dbs[0].lock().faults = Faults::none();
    sleep(10 * SECOND).await;
    log.once("shard 1 (memory-1) answers again after ");
}

#[tokio::test(start_paused = true)]
async fn a_slow_commit_opens_the_breaker_and_a_good_one_closes_it() {
    let (log, _guard) = Log::capture();
    let shards = FakeShards::new(1).await;
    let engine = shards.start(Settings::default()).await;
    shards.dbs[0].lock().faults.commit_ms = (1_500, 1_500);
    assert!(put(&engine).await);
    let opened = log.once("the breaker of shard 1 (memory-1) opened: a commit is slow");
    assert!(opened.contains(" WARN "), "{opened}");
    shards.dbs[0].lock().faults = Faults::none();
    sleep(2 * SECOND).await;
    assert!(put(&engine).await);
    log.once("the breaker of shard 1 (memory-1) closed after ");
    log.never("does not answer");
}

#[tokio::test(start_paused = true)]
async fn a_loss_a_wait_and_a_shard_that_is_had_again_are_said_once_each() {
    let (log, _guard) = Log::capture();
    let shards = FakeShards::new(1).await;
    let clock = || Arc::new(shards.clock(Duration::ZERO));
    let first = Process::new(1);
    let owner = shards.start_as(&first, "here:1", Settings::default(), clock());
    owner.ready().await;
    let standby = shards.start_as(&Process::new(2), "there:2", Settings::default(), clock());
    sleep(10 * SECOND).await;
    log.once("shard 1 (memory-1) is owned by here:1; waiting until that node releases it or is silent");

    first.set(Life::CutOff);
    sleep(5 * SECOND).await;
    log.once("shard 1 (memory-1) does not answer: no answer within a second");
    first.set(Life::Running);
    sleep(5 * SECOND).await;
    let lost = log.once("shard 1 (memory-1) lost after 1");
    assert!(lost.contains(" WARN "), "{lost}");
    log.once("shard 1 (memory-1) is owned by there:2; waiting until that node releases it or is silent");

    standby.stop().await;
    sleep(5 * SECOND).await;
    log.once("shard 1 (memory-1) released after ");
    let again = log.once("shard 1 (memory-1) is owned again after ");
    assert!(again.contains(" WARN "), "{again}");
}

/// Enqueues items with so many keys. Returns the refusals.
async fn put_keys(engine: &Engine, keys: usize) -> Vec<Refusal> {
    let keyed = |key: usize| NewItem { dedupe_key: Some(key.to_string()), ..item("t") };
    let items = (0..keys).map(keyed).collect();
    let call = EnqueueCall { namespace: NAMESPACE.into(), items, ..EnqueueCall::default() };
    engine.enqueue(call).await.unwrap().into_iter().filter_map(Result::err).collect()
}

#[tokio::test(start_paused = true)]
async fn an_earlier_home_of_keys_that_is_not_configured_is_named_with_its_end() {
    let (log, _guard) = Log::capture();
    let mut shards = FakeShards::new(2).await;
    let engine = shards.start(Settings::default()).await;
    assert_eq!(put_keys(&engine, 20).await, []);
    assert_eq!(engine.status().await.unwrap().missing_homes, []);
    engine.stop().await;
    shards.dbs.pop();
    let engine = shards.start(Settings::default()).await;
    for _ in 0..2 {
        let refused = put_keys(&engine, 20).await;
        assert!(!refused.is_empty());
        for refusal in refused {
            let known =
                "shard 2, which may know the key, is not configured any more; this matters until 2026-";
            assert_eq!(
                (refusal.reason, refusal.message.starts_with(known)),
                (Reason::ShardUnavailable, true)
            );
        }
    }
    log.once("shard 2, which is not configured any more, may know keys; such keys are refused until 2026-");
    let missing = engine.status().await.unwrap().missing_homes;
    assert_eq!(missing.iter().map(|missing| ShardId(missing.shard)).collect::<Vec<_>>(), [ShardId(2)]);
    // The window, and the part of it by which the end of the earlier set is rounded up.
    let longest = Settings::default().dedupe_window * 9 / 8 + SECOND;
    let end = FakeShards::START.plus(longest).as_micros();
    assert!((FakeShards::START.as_micros()..end).contains(&missing[0].until_micros), "{missing:?}");
    sleep(longest).await;
    assert_eq!(put_keys(&engine, 20).await, []);
    assert_eq!(engine.status().await.unwrap().missing_homes, []);
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_is_changed_is_said_and_shown_within_a_minute() {
    let (log, _guard) = Log::capture();
    let shards = FakeShards::new(1).await;
    let engine = shards.start(Settings::default()).await;
    shards.dbs[0].lock().not_durable = vec!["sync_binlog is 0".to_owned()];
    sleep(150 * SECOND).await;
    let said = log.once("a setting of shard 1 (memory-1) was changed: sync_binlog is 0");
    assert!(said.contains(" WARN "), "{said}");
    assert_eq!(engine.status().await.unwrap().shards[0].concerns, ["sync_binlog is 0"]);
    shards.dbs[0].lock().not_durable.clear();
    sleep(150 * SECOND).await;
    log.once("no longer so of shard 1 (memory-1): sync_binlog is 0");
    assert!(engine.status().await.unwrap().shards[0].concerns.is_empty());
}
