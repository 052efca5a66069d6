//! Load of a node while a turn is measured: polls that wait, and enqueues that are queued.

use std::time::Duration;

use anyhow::Context as _;
use forebay_engine::{CallerFrom, Demand, DequeueCall, Engine, EnqueueCall, NewItem};
use forebay_types::{Body, DeliveryPolicy, Namespace, Schedule, ShardId, TopicName};
use tokio::{task::JoinHandle, time::sleep};

/// Tenants of the polls and of the queued enqueues. One tenant alone may not have so many.
const TENANTS: usize = 16;
/// Bytes that an enqueue is charged with while it waits.
const ADMITTED_BYTES: usize = 256;
/// The topic for which polls wait, of each tenant.
pub const WAITED_FOR: &str = "waited-for";

/// The namespace, and the topic, of single enqueues.
pub const PROBE: &str = "probe";

/// A tenant of what waits.
pub fn tenant(number: usize) -> Namespace {
    format!("tenant-{:02}", number % TENANTS).as_str().into()
}

/// A dequeue call that waits.
fn poll(namespace: Namespace, topic: &str) -> DequeueCall {
    DequeueCall {
        namespace,
        demands: vec![Demand { topic: topic.into(), max_items: 1 }],
        wait: Duration::from_secs(3_600),
        lease: None,
        consumer: String::new(),
        from: CallerFrom::default(),
        max_bytes: 1 << 20,
        fetch: None,
    }
}

/// Starts a call for each of so many prefixes of the measured namespace, of which nothing is there.
pub async fn park_prefixes(engine: &Engine, prefixes: usize) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let before = engine.status().await.context("the engine has stopped")?.polls;
    let consumer = |number| {
        let (engine, call) = (engine.clone(), poll(PROBE.into(), &format!("nothing-{number}*")));
        tokio::spawn(async move { drop(engine.dequeue(call).await) })
    };
    let consumers: Vec<_> = (0..prefixes).map(consumer).collect();
    while engine.status().await.context("the engine has stopped")?.polls < before + prefixes {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(consumers)
}

/// Leases items of all topics that begin alike: the first call has them put in order.
pub async fn take(engine: &Engine, namespace: &str, prefix: &str) -> anyhow::Result<()> {
    let demands = vec![Demand { topic: format!("{prefix}*").into(), max_items: 1_000 }];
    let call = DequeueCall { demands, wait: Duration::from_secs(5), ..poll(namespace.into(), "") };
    let items = engine.dequeue(call).await.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
    anyhow::ensure!(!items.is_empty(), "nothing is ready in {prefix}*");
    Ok(())
}

/// Starts consumers that wait for items, and wait again when they have one.
pub async fn park(engine: &Engine, polls: usize) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let consumer = |number| {
        let (engine, namespace) = (engine.clone(), tenant(number));
        tokio::spawn(async move {
            let call = poll(namespace.clone(), WAITED_FOR);
            while let Ok(items) = engine.dequeue(call.clone()).await
                && !items.is_empty()
            {
                let receipts = items.iter().filter_map(|item| item.receipt).collect();
                let _ = engine.ack(namespace.clone(), receipts, None).await;
            }
        })
    };
    let consumers: Vec<_> = (0..polls).map(consumer).collect();
    while engine.status().await.context("the engine has stopped")?.polls < polls {
        let refused = consumers.iter().any(JoinHandle::is_finished);
        anyhow::ensure!(!refused, "a poll was refused");
        sleep(Duration::from_millis(1)).await;
    }
    Ok(consumers)
}

/// Starts single enqueues that wait for their commits: at `shard`, or wherever the engine puts them.
pub async fn queue(
    engine: &Engine,
    enqueues: usize,
    shard: Option<ShardId>,
) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let producer = |number: usize| {
        let (engine, namespace) = (engine.clone(), tenant(number));
        tokio::spawn(async move {
            // It is refused if its shard is lost.
            let _ = engine.enqueue(call(namespace, "queued", shard)).await;
        })
    };
    let producers: Vec<_> = (0..enqueues).map(producer).collect();
    // Some may be stored already.
    let least = enqueues * 9 / 10 * ADMITTED_BYTES;
    while engine.status().await.context("the engine has stopped")?.admitted_bytes < least {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(producers)
}

/// The topic of one of the polls that have one each.
pub fn own_topic(number: usize) -> TopicName {
    TopicName { namespace: tenant(number), topic: format!("nothing-{number}").as_str().into() }
}

/// Starts a call for each of so many topics of which nothing is there.
pub async fn park_apart(engine: &Engine, polls: usize) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let consumer = |number| {
        let TopicName { namespace, topic } = own_topic(number);
        let (engine, call) = (engine.clone(), poll(namespace, &topic));
        tokio::spawn(async move { drop(engine.dequeue(call).await) })
    };
    let consumers: Vec<_> = (0..polls).map(consumer).collect();
    while engine.status().await.context("the engine has stopped")?.polls < polls {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(consumers)
}

/// Stores one item: in `shard`, or wherever the engine puts it.
pub async fn enqueue(
    engine: &Engine,
    TopicName { namespace, topic }: TopicName,
    shard: Option<ShardId>,
) -> anyhow::Result<()> {
    let answers = engine.enqueue(call(namespace, &topic, shard)).await;
    let answers = answers.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
    for answer in answers {
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
    }
    Ok(())
}

fn call(namespace: Namespace, topic: &str, shard: Option<ShardId>) -> EnqueueCall {
    let item = NewItem {
        topic: topic.into(),
        priority: 0,
        body: Body::default(),
        schedule: Schedule::Now,
        lease: Duration::from_secs(30),
        lease_is_default: false,
        ttl: None,
        policy: DeliveryPolicy::AtLeastOnce,
        max_attempts: 16,
        attempts_are_default: false,
        dedupe_key: None,
        shard,
        rank: None,
    };
    EnqueueCall { namespace, items: vec![item], ..EnqueueCall::default() }
}
