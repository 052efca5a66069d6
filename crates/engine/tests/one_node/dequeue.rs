//! Dequeue: the order of delivery, polls that wait, and items that are not leased.

use std::time::Duration;

use forebay_engine::*;
use forebay_store::{Shard, SqliteShard};
use forebay_types::{DeliveryPolicy, Reason, Refusal, Schedule, ShardId, TopicName};
use futures_util::future::join_all;

use crate::queue::{Queue, item, payloads};

#[tokio::test]
async fn items_come_out_by_priority_then_age() {
    for shards in [1, 2, 16] {
        let queue = Queue::start(shards).await;
        for (priority, name) in [(5, "e"), (-1, "a"), (3, "c"), (-1, "b"), (3, "d")] {
            queue.put(vec![item(priority, name)]).await;
        }
        let items = queue.get(10, 0).await;
        assert_eq!(payloads(&items), ["a", "b", "c", "d", "e"]);
        assert!(queue.get(10, 0).await.is_empty());
        queue.engine.stop().await;
    }
}

#[tokio::test]
async fn a_backlog_far_over_the_budget_comes_out_in_order() {
    // Heads are waited for, however slow the machine is: the order is exact.
    let head_timeout = Duration::from_secs(20);
    let settings = Settings { index_bytes: 64 << 10, head_timeout, ..Settings::default() };
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
    // An item that met a waiting consumer is leased like any other, also for a new owner.
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
async fn expired_items_go_and_at_most_once_items_need_no_ack() {
    let queue = Queue::start(1).await;
    let mut brief = item(0, "gone");
    // It is due for a moment, long after the first dequeue.
    brief.ttl = Some(Duration::from_millis(1_010));
    brief.schedule = Schedule::Delay(Duration::from_millis(1_000));
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

/// The answers to polls of a prefix in each of a thousand namespaces, for which one payer pays.
async fn polls(engine: &Engine, payer: &str) -> Vec<Result<(), Refusal>> {
    let poll = |number: usize| {
        let demands = vec![Demand { topic: "*".into(), max_items: 1 }];
        let namespace = format!("{payer}{number}").as_str().into();
        engine.dequeue(DequeueCall { namespace, demands, max_bytes: 1, ..DequeueCall::default() })
    };
    let answers = paid_by(Some(payer.into()), join_all((0..1_000).map(poll))).await;
    answers.into_iter().map(|answer| answer.map(drop)).collect()
}

/// The same of polls at another node, which fetch here.
async fn fetches(engine: &Engine, payer: &str) -> Vec<Result<(), Refusal>> {
    let fetch = |number: usize| {
        let name = TopicName::new(format!("{payer}{number}").as_str(), "*");
        let (before, lease, consumer, payer) = (None, None, String::new(), Some(payer.into()));
        let call = FetchCall { name, max_items: 1, max_bytes: 1, before, lease, consumer, link: 1, payer };
        engine.lease_items(call)
    };
    join_all((0..1_000).map(fetch)).await.into_iter().map(|answer| answer.map(drop)).collect()
}

#[tokio::test]
async fn prefixes_of_many_namespaces_count_for_who_pays() {
    for is_fetch in [false, true] {
        let queue = Queue::start(1).await;
        let ask = async |payer: &str| match is_fetch {
            false => polls(&queue.engine, payer).await,
            true => fetches(&queue.engine, payer).await,
        };
        let refused = ask("greedy").await.into_iter().filter_map(Result::err);
        let reasons: Vec<Reason> = refused.map(|refusal| refusal.reason).collect();
        assert!(!reasons.is_empty() && reasons.iter().all(|reason| *reason == Reason::Overloaded));
        assert!(ask("other").await[0].is_ok(), "places are kept for others, by fetches: {is_fetch}");
        queue.engine.stop().await;
    }
}
