//! The engine beside shards that are not as others are.

use std::{sync::Arc, time::Duration};

use forebay_engine::{
    DeliveredItem, DequeueCall, Engine, EnqueueCall, EnqueueOutcome, NackAction, NackOf, NewItem, Settings,
};
use forebay_testkit::{FakeShards, NAMESPACE, dequeue, fake::Process, item as item_of};
use forebay_types::{Body, DeliveryPolicy, Reason, Refusal, Schedule, ShardId};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// A running engine, with calls for one tenant.
struct Queue {
    engine: Engine,
}

impl Queue {
    async fn start(shards: &FakeShards) -> Self {
        Self { engine: shards.start(Settings::default()).await }
    }

    /// With a wall clock that is `ahead` of the true time.
    async fn start_ahead(shards: &FakeShards, ahead: Duration) -> Self {
        Self { engine: shards.start_with(Settings::default(), Arc::new(shards.clock(ahead))).await }
    }

    async fn put(&self, items: Vec<NewItem>) -> Vec<Result<EnqueueOutcome, Refusal>> {
        self.try_put(items).await.unwrap()
    }

    async fn try_put(&self, items: Vec<NewItem>) -> Result<Vec<Result<EnqueueOutcome, Refusal>>, Refusal> {
        self.engine
            .enqueue(EnqueueCall { namespace: NAMESPACE.into(), items, ..EnqueueCall::default() })
            .await
    }

    /// Enqueues one item under a request id.
    async fn put_once(&self, request_id: usize) -> Result<EnqueueOutcome, Refusal> {
        let request_id = Some(request_id.to_string());
        let call = EnqueueCall {
            namespace: NAMESPACE.into(),
            items: vec![item()],
            request_id,
            ..EnqueueCall::default()
        };
        self.engine.enqueue(call).await.unwrap().remove(0)
    }

    /// Takes what is there.
    async fn get(&self) -> Vec<DeliveredItem> {
        self.get_within(Duration::ZERO).await
    }

    async fn get_within(&self, wait: Duration) -> Vec<DeliveredItem> {
        self.dequeue(wait, 10).await
    }

    async fn get_at_most(&self, max_items: usize) -> Vec<DeliveredItem> {
        self.dequeue(Duration::ZERO, max_items).await
    }

    async fn dequeue(&self, wait: Duration, max_items: usize) -> Vec<DeliveredItem> {
        self.engine.dequeue(DequeueCall { wait, ..dequeue(&["t"], max_items) }).await.unwrap()
    }

    /// How many items are there `span` later. They are released at once.
    async fn count_after(&self, span: Duration) -> usize {
        tokio::time::sleep(span).await;
        let items = self.get().await;
        let action = NackAction::Release(Duration::ZERO);
        let nacks = items.iter().map(|item| item.receipt.unwrap());
        let nacks = nacks.map(|receipt| NackOf { receipt, action, metadata: None, reason: String::new() });
        let released = self.engine.nack(NAMESPACE.into(), nacks.collect(), None).await.unwrap();
        assert!(released.iter().all(Result::is_ok), "{released:?}");
        items.len()
    }
}

fn item() -> NewItem {
    item_of("t")
}

#[tokio::test(start_paused = true)]
async fn spans_count_in_the_time_of_a_shard_whose_fence_is_an_hour_ahead() {
    let shards = FakeShards::new(1).await;
    shards.dbs[0].lock().tables.fence.marks.time = FakeShards::START.plus(HOUR);
    let queue = Queue::start(&shards).await;
    let brief = NewItem { ttl: Some(10 * MINUTE), ..item() };
    assert!(queue.put(vec![brief]).await[0].is_ok());
    // The time of the shard runs at half speed.
    assert_eq!(queue.count_after(10 * MINUTE).await, 1, "an item lives as long as its caller asked for");
    assert_eq!(queue.count_after(11 * MINUTE).await, 0, "and not for ever");

    let late = NewItem { schedule: Schedule::Delay(10 * MINUTE), ..item() };
    let named = NewItem { schedule: Schedule::After(FakeShards::START.plus(HOUR)), ..item() };
    assert!(queue.put(vec![late, named]).await.iter().all(Result::is_ok));
    assert_eq!(queue.count_after(Duration::from_secs(1)).await, 1, "the shard's time has passed the hour");
    assert_eq!(queue.count_after(9 * MINUTE).await, 1);
    assert_eq!(queue.count_after(12 * MINUTE).await, 2);

    let leased = queue.get().await;
    assert_eq!(leased.len(), 2);
    assert_eq!(queue.count_after(Duration::from_secs(29)).await, 0, "the leases are open");
    assert_eq!(queue.count_after(Duration::from_secs(33)).await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_clock_is_right_keeps_the_spans_of_one_whose_clock_was_ahead() {
    let shards = FakeShards::new(1).await;
    // The servers' clocks agree with the first node's.
    shards.dbs[0].lock().clock_offset = HOUR.as_micros() as i64;
    let wrong = Queue::start_ahead(&shards, HOUR).await;
    let brief = NewItem { ttl: Some(10 * MINUTE), ..item() };
    let late = NewItem { schedule: Schedule::Delay(10 * MINUTE), ..item() };
    assert!(wrong.put(vec![brief, late]).await.iter().all(Result::is_ok));
    wrong.engine.stop().await;
    shards.dbs[0].lock().clock_offset = 0;
    let right = Queue::start(&shards).await;
    assert_eq!(right.count_after(9 * MINUTE).await, 1, "one still lives, and the other is not due");
    let end = right.count_after(12 * MINUTE).await;
    assert_eq!(end, 1, "one has expired, and the other is due");
    let lives = NewItem { ttl: Some(10 * MINUTE), ..item() };
    assert!(right.put(vec![lives]).await[0].is_ok());
    assert_eq!(right.count_after(MINUTE).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_unreachable_at_the_start_holds_up_only_its_own_keys() {
    let shards = FakeShards::new(4).await;
    let first = Queue::start(&shards).await;
    let mut homes = Vec::new();
    for call in 0..40 {
        homes.push(first.put_once(call).await.unwrap().id.shard);
    }
    first.engine.stop().await;
    tokio::time::sleep(11 * MINUTE).await; // a window is ten

    shards.dbs[3].lock().faults.down = true;
    let second = Queue::start(&shards).await;
    let began = Instant::now();
    for (call, home) in homes.iter().enumerate() {
        let stored = second.put_once(call).await;
        if *home == ShardId(4) {
            let refusal = stored.unwrap_err();
            assert_eq!(refusal.reason, Reason::ShardUnavailable);
            assert!(refusal.message.contains("shard 4"), "{}", refusal.message);
        } else {
            let id = stored.unwrap().id;
            assert_eq!((id.shard, second.put_once(call).await.unwrap().id), (*home, id));
        }
    }
    let refused = homes.iter().filter(|home| **home == ShardId(4)).count();
    assert!((1..20).contains(&refused), "{refused} of 40 calls have their home there");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_earlier_home_may_be_unknown_is_refused_with_the_reason() {
    let shards = FakeShards::new(4).await;
    shards.dbs[3].lock().faults.down = true;
    let queue = Queue::start(&shards).await;
    for call in 0..20 {
        let refusal = queue.put_once(call).await.unwrap_err();
        assert_eq!(refusal.reason, Reason::ShardUnavailable);
        assert!(refusal.message.contains("shard 4"), "{}", refusal.message);
    }
    // No window reaches back to before the node began.
    tokio::time::sleep(10 * MINUTE).await;
    let mut stored = 0;
    for call in 0..20 {
        stored += usize::from(queue.put_once(call).await.is_ok());
    }
    assert!((8..20).contains(&stored), "{stored} of 20 have a home that answers");
}

#[tokio::test(start_paused = true)]
async fn a_shard_with_a_full_disk_is_left_out() {
    let shards = FakeShards::new(2).await;
    let queue = Queue::start(&shards).await;
    shards.dbs[1].lock().faults.disk_full = true;
    let mut refused = 0;
    for topic in 0..200 {
        let topic = format!("t{topic}").into();
        refused += usize::from(queue.put(vec![NewItem { topic, ..item() }]).await[0].is_err());
    }
    assert_eq!(refused, 1, "the one that found the disk full");
    let named = NewItem { shard: Some(ShardId(2)), ..item() };
    let refusal = queue.try_put(vec![named, item()]).await.unwrap_err();
    assert_eq!(refusal.reason, Reason::DiskFull, "an item that names a shard goes nowhere else");
}

#[tokio::test(start_paused = true)]
async fn a_shard_with_too_many_bytes_waiting_is_left_out() {
    let shards = FakeShards::new(2).await;
    let settings = Settings { admit_shard_bytes: 10_000, admit_tenant_bytes: 10_000, ..Settings::default() };
    let queue = Queue { engine: shards.start(settings).await };
    let sized = |bytes: usize, shard: Option<u32>| {
        let body = Body { payload: vec![0; bytes].into(), ..Body::default() };
        NewItem { body, shard: shard.map(ShardId), ..item() }
    };
    queue.put(vec![sized(1, Some(1)), sized(1, Some(2))]).await;
    for (full, other) in [(1, 2), (2, 1)] {
        for db in &shards.dbs {
            db.lock().faults.commit_ms = (100, 100);
        }
        // One long item waits in a shard, and five short ones in the other: that has the longer queue.
        let waiting = async {
            let long = queue.put(vec![sized(9_500, Some(full))]);
            tokio::join!(long, queue.put(vec![sized(100, Some(other)); 5]))
        };
        let last = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            tokio::join!(queue.try_put(vec![sized(1_000, None)]), queue.try_put(vec![sized(20_000, None)]))
        };
        let (_, (taken, refused)) = tokio::join!(waiting, last);
        assert_eq!(taken.unwrap()[0].as_ref().unwrap().id.shard, ShardId(other));
        assert_eq!(refused.unwrap_err().reason, Reason::Overloaded, "neither has room for so many bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_whose_head_is_not_known_hides_no_item_of_another() {
    for wait in [Duration::ZERO, Duration::from_millis(30)] {
        let shards = FakeShards::new(2).await;
        let first = Queue::start(&shards).await;
        let pinned = |shard| NewItem { shard: Some(ShardId(shard)), ..item() };
        assert!(first.put(vec![pinned(1), pinned(2)]).await.iter().all(Result::is_ok));
        first.engine.stop().await;
        // The new owner is ready before it has read this shard's heads.
        shards.dbs[0].lock().faults.read_ms = (200, 200);
        let second = Queue::start(&shards).await;
        let began = Instant::now();
        let items = second.get_within(wait).await;
        let took = began.elapsed();
        assert_eq!(items.iter().map(|item| item.id.shard).collect::<Vec<_>>(), [ShardId(2)], "{wait:?}");
        assert!(took < wait + Duration::from_millis(60), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_lost_hides_no_item_of_another() {
    let shards = FakeShards::new(2).await;
    let queue = Queue::start(&shards).await;
    let pinned = |priority, shard| NewItem { priority, shard: Some(ShardId(shard)), ..item() };
    assert!(queue.put(vec![pinned(0, 1), pinned(1, 2)]).await.iter().all(Result::is_ok));
    // Another owner has taken the shard of the better item.
    shards.dbs[0].lock().tables.fence.epoch += 1;
    let items = queue.get_at_most(1).await;
    assert_eq!(items.iter().map(|item| item.id.shard).collect::<Vec<_>>(), [ShardId(2)]);
}

#[tokio::test(start_paused = true)]
async fn an_at_most_once_item_that_expires_before_its_batch_holds_up_no_answer() {
    let shards = FakeShards::new(2).await;
    let queue = Queue::start(&shards).await;
    let (policy, ttl) = (DeliveryPolicy::AtMostOnce, Some(Duration::from_millis(200)));
    let once = NewItem { policy, ttl, shard: Some(ShardId(1)), ..item() };
    let leased = NewItem { shard: Some(ShardId(2)), ..item() };
    assert!(queue.put(vec![once, leased]).await.iter().all(Result::is_ok));
    shards.dbs[0].lock().faults.commit_ms = (400, 400);
    // The first item waits behind a slow batch, for another one that is slow.
    let slow = queue.put(vec![NewItem { topic: "other".into(), shard: Some(ShardId(1)), ..item() }]);
    let get = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        (queue.get().await, began.elapsed())
    };
    let (_, (items, took)) = tokio::join!(slow, get);
    assert_eq!(items.iter().map(|item| item.id.shard).collect::<Vec<_>>(), [ShardId(2)]);
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shard_whose_schema_a_node_cannot_use_is_said_to_be_for_others() {
    let shards = FakeShards::new(1).await;
    let db = &shards.dbs[0];
    let cluster = db.lock().cluster.take();
    let clock = Arc::new(shards.clock(Duration::ZERO));
    let engine = shards.start_as(&Process::new(1), "a:1", Settings::default(), clock);
    sleep(9 * SECOND).await;
    assert!(!engine.sights().await.unwrap()[0].stuck, "somebody may be at work on it");
    sleep(3 * SECOND).await;
    assert!(engine.sights().await.unwrap()[0].stuck);
    db.lock().cluster = cluster;
    engine.ready().await;
    assert!(!engine.sights().await.unwrap()[0].stuck);
    // A server that is away may be away for others too.
    db.lock().faults.down = true;
    sleep(30 * SECOND).await;
    assert!(!engine.sights().await.unwrap()[0].stuck);
}
