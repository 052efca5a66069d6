//! The engine over real SQLite shards: every path once.

use std::{sync::Arc, time::Duration};

use forebay_engine::*;
use forebay_store::{Shard, SqliteShard};
use forebay_types::{Body, DeliveryPolicy, Fate, Limits, Reason, ShardId, SystemClock};

struct Queue {
    engine: Engine,
    folder: tempfile::TempDir,
    shards: u32,
}

impl Queue {
    async fn start(shards: u32) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), shards, Settings::default()).await
    }

    async fn start_in(folder: tempfile::TempDir, shards: u32, settings: Settings) -> Self {
        let mut list: Vec<(ShardId, Arc<dyn Shard>)> = Vec::new();
        for id in 1..=shards {
            let shard = SqliteShard::new(ShardId(id), folder.path().join(format!("{id}.db")));
            shard.migrate().await.unwrap();
            list.push((ShardId(id), Arc::new(shard)));
        }
        let clock = Arc::new(SystemClock::default());
        let engine = Engine::start(settings, "here:1".into(), list, clock, Arc::new(()), 7);
        engine.ready().await;
        Self { engine, folder, shards }
    }

    async fn restart(self) -> Self {
        self.engine.stop().await;
        Self::start_in(self.folder, self.shards, Settings::default()).await
    }

    async fn put(&self, items: Vec<NewItem>) -> Vec<Enqueued> {
        let call = EnqueueCall { namespace: "ns".into(), items, request_id: None };
        self.engine.enqueue(call).await.unwrap().into_iter().map(|result| result.unwrap()).collect()
    }

    async fn get(&self, max: usize, wait: u64) -> Vec<Delivered> {
        let call = DequeueCall {
            namespace: "ns".into(),
            demands: vec![Demand { topic: "t".into(), max_items: max }],
            wait: Duration::from_millis(wait),
            lease: None,
            consumer: "test".into(),
            max_bytes: 3 << 20,
        };
        self.engine.dequeue(call).await.unwrap()
    }

    async fn ack(&self, items: &[Delivered]) -> Vec<Settled> {
        self.engine.ack(items.iter().map(|item| item.receipt.unwrap()).collect()).await.unwrap()
    }
}

fn item(priority: i32, payload: &str) -> NewItem {
    let limits = Limits::default();
    NewItem {
        topic: "t".into(),
        priority,
        body: Body { payload: payload.to_owned().into(), ..Body::default() },
        schedule: Schedule::Now,
        lease: limits.lease_default,
        ttl: None,
        policy: DeliveryPolicy::AtLeastOnce,
        max_attempts: 16,
        dedupe_key: None,
        shard: None,
    }
}

fn payloads(items: &[Delivered]) -> Vec<&str> {
    items.iter().map(|item| std::str::from_utf8(&item.body.payload).unwrap()).collect()
}

#[tokio::test]
async fn items_come_out_by_priority_then_age_and_are_gone_after_their_ack() {
    for shards in [1, 2, 16] {
        let queue = Queue::start(shards).await;
        for (priority, name) in [(5, "e"), (-1, "a"), (3, "c"), (-1, "b"), (3, "d")] {
            queue.put(vec![item(priority, name)]).await;
        }
        let items = queue.get(10, 0).await;
        assert_eq!(payloads(&items), ["a", "b", "c", "d", "e"]);
        assert!(queue.get(10, 0).await.is_empty());
        assert!(queue.ack(&items).await.iter().all(Result::is_ok));
        let again = queue.ack(&items).await;
        assert!(again.iter().all(|result| result.as_ref().unwrap_err().fate == Some(Fate::Gone)));
        let queue = queue.restart().await;
        assert!(queue.get(10, 0).await.is_empty());
        queue.engine.stop().await;
    }
}

#[tokio::test]
async fn a_restart_keeps_items_leases_and_order() {
    let queue = Queue::start(2).await;
    queue.put((0..500).map(|n| item(n % 5, &n.to_string())).collect()).await;
    let leased = queue.get(100, 0).await;
    assert_eq!(leased.len(), 100);
    let queue = queue.restart().await;
    let mut rest = Vec::new();
    while rest.len() < 400 {
        let items = queue.get(1_000, 1_000).await;
        assert!(!items.is_empty(), "{} of 400", rest.len());
        rest.extend(items);
    }
    let order: Vec<(i32, i64)> =
        rest.iter().map(|item| (item.priority, item.enqueued_at.as_micros())).collect();
    assert!(order.is_sorted_by_key(|(priority, _)| *priority));
    assert!(queue.ack(&leased).await.iter().all(Result::is_ok), "leases survive their node");
    assert!(queue.ack(&rest).await.iter().all(Result::is_ok));
    queue.engine.stop().await;
}

#[tokio::test]
async fn what_meets_a_waiting_consumer_takes_one_commit() {
    let queue = Queue::start(1).await;
    let path = queue.folder.path().join("1.db");
    let shard = SqliteShard::new(ShardId(1), path);
    queue.put(vec![item(1, "first")]).await;
    let first = queue.get(1, 0).await;
    assert!(queue.ack(&first).await.iter().all(Result::is_ok));
    let before = shard.observe().await.unwrap().batch;
    let waiting = queue.get(2, 10_000);
    let enqueued = async {
        // The poll's event is sent before this one's, and the engine takes them in that order.
        tokio::task::yield_now().await;
        queue.put(vec![item(7, "c"), item(5, "a"), item(5, "b")]).await
    };
    let (items, _) = tokio::join!(waiting, enqueued);
    assert_eq!(payloads(&items), ["a", "b"], "the best of the call");
    assert_eq!(shard.observe().await.unwrap().batch, before + 1);
    assert_eq!(payloads(&queue.get(2, 0).await), ["c"], "the rest stays");
    assert!(queue.ack(&items).await.iter().all(Result::is_ok));
    // What was met is leased like anything else, also for a new owner.
    let waiting = queue.get(1, 10_000);
    let enqueued = async {
        tokio::task::yield_now().await;
        queue.put(vec![item(1, "kept")]).await
    };
    let (kept, _) = tokio::join!(waiting, enqueued);
    let queue = queue.restart().await;
    assert!(queue.get(1, 0).await.is_empty());
    assert!(queue.ack(&kept).await.iter().all(Result::is_ok));
    queue.engine.stop().await;
}

#[tokio::test]
async fn a_waiting_consumer_gets_what_is_enqueued() {
    let queue = Queue::start(2).await;
    let (items, _) = tokio::join!(queue.get(1, 10_000), async {
        tokio::task::yield_now().await;
        queue.put(vec![item(0, "x")]).await
    });
    assert_eq!(payloads(&items), ["x"]);
    queue.engine.stop().await;
}

#[tokio::test]
async fn nacks_delays_and_dead_letters() {
    let queue = Queue::start(1).await;
    let mut first = item(0, "x");
    first.max_attempts = 2;
    first.schedule = Schedule::Delay(Duration::from_millis(30));
    queue.put(vec![first]).await;
    assert!(queue.get(1, 0).await.is_empty());
    let got = queue.get(1, 5_000).await;
    assert_eq!(got[0].attempt, 1);
    let nack =
        |receipt, action| NackOf { receipt, action, metadata: Some(b"m".to_vec()), reason: "no".into() };
    let nacks = vec![nack(got[0].receipt.unwrap(), NackAction::Release(Duration::ZERO))];
    queue.engine.nack(nacks).await.unwrap()[0].clone().unwrap();
    for attempt in [2, 3] {
        let got = queue.get(1, 5_000).await;
        assert_eq!((got[0].attempt, &got[0].body.metadata[..]), (attempt, &b"m"[..]));
        let nacks = vec![nack(got[0].receipt.unwrap(), NackAction::Fail(Duration::from_millis(5)))];
        queue.engine.nack(nacks).await.unwrap()[0].clone().unwrap();
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
async fn dedupe_keys_and_request_ids_store_once() {
    let queue = Queue::start(2).await;
    let mut keyed = item(0, "x");
    keyed.dedupe_key = Some("k".into());
    let first = queue.put(vec![keyed.clone(), keyed.clone()]).await;
    assert_eq!((first[0].id, first[0].duplicate, first[1].duplicate), (first[1].id, false, true));
    let queue = queue.restart().await;
    let again = queue.put(vec![keyed]).await;
    assert_eq!((again[0].id, again[0].duplicate), (first[0].id, true));
    let call = EnqueueCall {
        namespace: "ns".into(),
        items: vec![item(0, "y"), item(0, "z")],
        request_id: Some("r".into()),
    };
    let one = queue.engine.enqueue(call.clone()).await.unwrap();
    let two = queue.engine.enqueue(call).await.unwrap();
    assert_eq!(one, two);
    assert_eq!(queue.get(10, 0).await.len(), 3);
    queue.engine.stop().await;
}

#[tokio::test]
async fn leases_end_and_extensions_hold_them() {
    let queue = Queue::start(1).await;
    let mut short = item(0, "x");
    short.lease = Duration::from_secs(1);
    queue.put(vec![short.clone(), short]).await;
    let got = queue.get(2, 0).await;
    let extensions =
        vec![ExtendOf { receipt: got[0].receipt.unwrap(), lease: Some(Duration::from_secs(60)) }];
    queue.engine.extend_lease(extensions).await.unwrap()[0].clone().unwrap();
    let again = queue.get(2, 5_000).await;
    assert_eq!((again.len(), again[0].id, again[0].attempt), (1, got[1].id, 2));
    let acks = queue.ack(&got).await;
    assert!(acks[0].is_ok());
    assert_eq!(acks[1].as_ref().unwrap_err().fate, Some(Fate::Leased));
    queue.engine.stop().await;
}

#[tokio::test]
async fn expired_items_go_and_at_most_once_items_need_no_ack() {
    let queue = Queue::start(1).await;
    let mut brief = item(0, "gone");
    brief.ttl = Some(Duration::from_millis(20));
    brief.schedule = Schedule::Delay(Duration::from_millis(10));
    let mut once = item(1, "once");
    once.policy = DeliveryPolicy::AtMostOnce;
    queue.put(vec![brief, once]).await;
    let got = queue.get(1, 0).await;
    assert_eq!((payloads(&got), got[0].receipt), (vec!["once"], None));
    let empty = async {
        while queue.engine.status().await.unwrap().shards[0].scheduled
            + queue.engine.status().await.unwrap().shards[0].ready
            > 0
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), empty).await.unwrap();
    assert!(queue.get(1, 0).await.is_empty());
    queue.engine.stop().await;
}

#[tokio::test]
async fn a_backlog_far_over_the_budget_comes_out_in_order() {
    let settings = Settings { index_bytes: 64 << 10, ..Settings::default() };
    let queue = Queue::start_in(tempfile::tempdir().unwrap(), 2, settings).await;
    for batch in 0..20 {
        queue.put((0..250).map(|n| item((n * 7 + batch) % 11, &format!("{batch}-{n}"))).collect()).await;
    }
    let mut order = Vec::new();
    loop {
        let items = queue.get(300, 500).await;
        if items.is_empty() {
            break;
        }
        order.extend(items.iter().map(|item| item.priority));
        assert!(queue.ack(&items).await.iter().all(Result::is_ok));
        let used: usize =
            queue.engine.status().await.unwrap().shards.iter().map(|shard| shard.index_bytes).sum();
        assert!(used <= 64 << 10, "{used}");
    }
    assert_eq!(order.len(), 5_000);
    assert!(order.is_sorted());
    queue.engine.stop().await;
}

#[tokio::test]
async fn active_topics_are_listed_most_urgent_first() {
    let queue = Queue::start(2).await;
    for (topic, priority) in [("b", 2), ("a", 2), ("c", 1)] {
        let mut new = item(priority, topic);
        new.topic = topic.into();
        queue.put(vec![new]).await;
    }
    let queue = queue.restart().await;
    let call = ActiveTopicsCall { namespace: "ns".into(), limit: 2, after: None, prefix: String::new() };
    let page = queue.engine.active_topics(call.clone()).await.unwrap();
    let names: Vec<&str> = page.topics.iter().map(|topic| &*topic.position.topic).collect();
    assert_eq!((names, page.more), (vec!["c", "b"], true));
    let after = Some(page.topics[1].position.clone());
    let rest = queue.engine.active_topics(ActiveTopicsCall { after, ..call }).await.unwrap();
    assert_eq!((&*rest.topics[0].position.topic, rest.topics.len(), rest.more), ("a", 1, false));
    queue.engine.stop().await;
    let call = EnqueueCall { namespace: "ns".into(), items: vec![item(0, "late")], request_id: None };
    assert_eq!(queue.engine.enqueue(call).await.unwrap_err().reason, Reason::NodeDraining);
}

#[tokio::test]
async fn a_key_is_remembered_when_shards_are_added_and_refused_when_its_home_is_gone() {
    let keyed = |n: u32| NewItem { dedupe_key: Some(format!("k{n}")), ..item(0, "x") };
    let queue = Queue::start(2).await;
    let first = queue.put((0..40).map(keyed).collect()).await;
    queue.engine.stop().await;

    let queue = Queue::start_in(queue.folder, 4, Settings::default()).await;
    let again = queue.put((0..40).map(keyed).collect()).await;
    for (first, again) in first.iter().zip(&again) {
        assert_eq!((first.id, again.duplicate), (again.id, true));
    }
    let more = queue.put((100..140).map(keyed).collect()).await;
    assert!(more.iter().any(|stored| stored.id.shard.0 > 2), "new shards are homes too");
    queue.engine.stop().await;

    let queue = Queue::start_in(queue.folder, 2, Settings::default()).await;
    let call =
        EnqueueCall { namespace: "ns".into(), items: (100..140).map(keyed).collect(), request_id: None };
    let results = queue.engine.enqueue(call).await.unwrap();
    for (stored, result) in more.iter().zip(results) {
        match result {
            Ok(again) => assert_eq!((again.id, again.duplicate), (stored.id, true)),
            Err(refusal) => assert_eq!(refusal.reason, Reason::ShardUnavailable),
        }
    }
    queue.engine.stop().await;
}

#[tokio::test]
async fn an_item_that_the_database_does_not_take_fails_alone() {
    let queue = Queue::start(1).await;
    let mut bad = item(0, "bad");
    bad.body.metadata = vec![0; 70_000].into(); // more than the column takes
    for request_id in [None, Some("r".to_owned())] {
        let mut items: Vec<NewItem> = (0..20).map(|n| item(n, "good")).collect();
        items[13] = bad.clone();
        let call = EnqueueCall { namespace: "ns".into(), items, request_id };
        let results = queue.engine.enqueue(call.clone()).await.unwrap();
        for (index, result) in results.iter().enumerate() {
            match result {
                Ok(stored) => assert!(index != 13 && !stored.duplicate),
                Err(refusal) => assert_eq!((index, refusal.reason), (13, Reason::InvalidField)),
            }
        }
        if call.request_id.is_some() {
            let again = queue.engine.enqueue(call).await.unwrap();
            assert_eq!(results, again, "the refusal is remembered with the rest");
        }
        assert_eq!(queue.get(100, 0).await.len(), 19);
    }
    queue.engine.stop().await;
}

#[tokio::test]
async fn a_topic_spreads_over_more_shards_when_two_fall_behind() {
    let queue = Queue::start(4).await;
    let shards_of = |stored: &[Enqueued]| {
        stored.iter().map(|stored| stored.id.shard).collect::<std::collections::BTreeSet<_>>()
    };
    let mut calm = Vec::new();
    for _ in 0..8 {
        calm.extend(queue.put(vec![item(0, "x")]).await);
    }
    assert!(shards_of(&calm).len() <= 2);
    let put = || queue.put((0..1_000).map(|_| item(0, "x")).collect());
    let (a, b, c, d, e, f) = tokio::join!(put(), put(), put(), put(), put(), put());
    let hurried: Vec<Enqueued> = [a, b, c, d, e, f].concat();
    assert_eq!(shards_of(&hurried).len(), 4);
    queue.engine.stop().await;
}
