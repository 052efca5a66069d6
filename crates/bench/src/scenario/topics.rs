//! The lifecycle over very many topics: consumers ask which are active, and pull from those.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use forebay_proto::v1;
use tokio::task::JoinSet;

use crate::{
    outcome::Outcome,
    payload::Head,
    system::{
        Delivered,
        forebay::{Client, Forebay, ack, enqueue, namespace, topic_name, topic_number},
    },
    times::Times,
    workload::{Load, Measured, Patience, Shared, Span, drain, measure, now, start_producers, within},
};

/// Topics a page of `GetActiveTopics`, and demands a dequeue.
const PAGE: u32 = 100;
/// How long a consumer waits when nothing is active.
const PAUSE: Duration = Duration::from_millis(5);

/// Runs it; each topic holds an item from the start, less urgent than all that come, and stays known.
pub async fn run(system: &Forebay, load: &Load, span: Span) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    let pages = Times::new()?;
    fill(&shared, system).await?;
    let mut producers = start_producers(&shared, system, None, None).await?;
    let mut consumers = JoinSet::new();
    for worker in 0..load.consumers {
        consumers.spawn(consume(shared.clone(), system.client(), worker, pages.clone()));
    }
    let workers = [&mut producers, &mut consumers];
    let measured = measure(&shared, system, span, workers, || pages.reset()).await?;
    let page = pages.with(|pages| pages.value_at_quantile(0.99)) as f64 / 1_000.0;
    shared.stop_producers();
    drain(&shared, &mut producers, &mut consumers).await?;
    // The items of the start come out as well, and did not go in meanwhile.
    let Measured { settled, confirmed, took, usage } = measured;
    let mut outcome = Outcome::of_items(settled.min(confirmed), took, usage);
    outcome.less("page p99", "ms", page);
    Ok(outcome)
}

/// Puts an item into each topic, in calls of many topics, so that all of them are known and active when the run
/// begins: in its few seconds the producers reach only some.
async fn fill(shared: &Shared, system: &Forebay) -> anyhow::Result<()> {
    let load = &shared.load;
    let topics: Vec<u32> = (0..load.topics).collect();
    for topics in topics.chunks(load.batch) {
        let first = shared.ledger.number(topics.len());
        let item = |(number, &topic): (u64, &u32)| {
            let priority = load.priorities;
            let payload = shared.ledger.payloads().make(Head { number, topic, priority, at_us: 0 });
            let topic = topic_name(topic);
            v1::EnqueueItem { topic, priority: i32::from(priority), payload, ..Default::default() }
        };
        let items = (first..).zip(topics).map(item).collect();
        shared.room.enter(topics.len()).await;
        within("enqueue", Duration::ZERO, enqueue(&mut system.client(), items)).await?;
        shared.ledger.confirm(first, topics.len());
    }
    Ok(())
}

async fn consume(shared: Arc<Shared>, mut client: Client, worker: u32, pages: Times) -> anyhow::Result<()> {
    let mut patience = Patience::new();
    while !shared.is_done() {
        let asked = now();
        let request =
            v1::GetActiveTopicsRequest { namespace: namespace(), page_size: PAGE, ..Default::default() };
        let active = async { Ok(client.get_active_topics(request).await?) };
        let active = within("active topics", Duration::ZERO, active).await?.into_inner().topics;
        pages.record(asked.elapsed());
        if active.is_empty() {
            patience.check(&shared)?;
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        // Consumers begin at different places of the page, so that they do not all ask for the same.
        let from = active.len() * worker as usize / shared.load.consumers as usize;
        let mut left = shared.load.batch as u32;
        let mut demands = Vec::new();
        for topic in active.iter().cycle().skip(from).take(active.len()) {
            let max_items = left.min(topic.ready_count.max(1) as u32);
            let selector = Some(v1::topic_demand::Selector::Topic(topic.topic.clone()));
            demands.push(v1::TopicDemand { selector, max_items });
            left -= max_items;
            if left == 0 {
                break;
            }
        }
        let request = v1::DequeueRequest { namespace: namespace(), demands, ..Default::default() };
        let answer = async { Ok(client.dequeue(request).await?) };
        let items = within("dequeue", Duration::ZERO, answer).await?.into_inner().items;
        if items.is_empty() {
            patience.check(&shared)?;
            continue;
        }
        let count = items.len();
        let mut receipts = Vec::with_capacity(count);
        for item in items {
            let topic = topic_number(&item.topic)?;
            shared.ledger.deliver(&Delivered { topic, payload: item.payload })?;
            receipts.push(item.receipt);
        }
        within("ack", Duration::ZERO, ack(&mut client, receipts)).await?;
        shared.settled.fetch_add(count as u64, Ordering::Relaxed);
        shared.room.add(count);
    }
    Ok(())
}
