//! The lifecycle over very many topics: consumers ask which are active, and pull from those.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use anyhow::ensure;
use forebay_proto::v1;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use super::lifecycle::Span;
use crate::{
    outcome::{LONGEST_US, Outcome},
    payload::Head,
    system::{
        Delivered, System,
        forebay::{Forebay, namespace, topic_name, topic_number},
    },
    usage::Usage,
    workload::{Load, Patience, Shared, finish, now, start_producers, within},
};

/// Topics a page of `GetActiveTopics`, and demands a dequeue.
const PAGE: u32 = 100;
/// How long a consumer waits when nothing is active.
const PAUSE: Duration = Duration::from_millis(5);

type Times = Arc<Mutex<Histogram<u64>>>;

/// Runs it; each topic holds an item from the start, less urgent than all that come, and stays known.
pub async fn run(system: &Forebay, load: &Load, span: Span) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    let pages = Times::new(Mutex::new(Histogram::new_with_bounds(1, LONGEST_US, 3)?));
    fill(&shared, system).await?;
    let mut producers = start_producers(&shared, system, None, None).await?;
    let mut consumers = JoinSet::new();
    for worker in 0..load.consumers {
        consumers.spawn(consume(shared.clone(), system.client(), worker, pages.clone()));
    }
    let measure = async {
        tokio::time::sleep(span.warm_up).await;
        pages.lock().unwrap_or_else(PoisonError::into_inner).reset();
        let (from, settled, confirmed) = (now(), shared.settled(), shared.ledger.confirmed());
        let usage = Usage::now(&system.parts());
        tokio::time::sleep(span.measured).await;
        let usage = Usage::now(&system.parts()).since(&usage);
        let (settled, confirmed) = (shared.settled() - settled, shared.ledger.confirmed() - confirmed);
        // The items of the start come out as well, and did not go in meanwhile.
        let mut outcome = Outcome::of_items(settled.min(confirmed), from.elapsed(), usage);
        let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.less("page p99", "ms", pages.value_at_quantile(0.99) as f64 / 1_000.0);
        outcome
    };
    let outcome = tokio::select! {
        biased;
        outcome = measure => outcome,
        Err(error) = finish(&mut producers) => return Err(error),
        Err(error) = finish(&mut consumers) => return Err(error),
    };
    shared.stop_producers();
    finish(&mut producers).await?;
    shared.sent.store(true, Ordering::Release);
    finish(&mut consumers).await?;
    shared.ledger.close()?;
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
        let request = v1::EnqueueRequest { namespace: namespace(), items, request_id: String::new() };
        shared.room.enter(topics.len()).await;
        let mut client = system.client();
        let answer = within("enqueue", Duration::ZERO, async { Ok(client.enqueue(request).await?) }).await?;
        let refused = answer.into_inner().results.into_iter().find_map(|result| result.error);
        ensure!(refused.is_none(), "an item was refused: {refused:?}");
        shared.ledger.confirm(first, topics.len());
    }
    Ok(())
}

async fn consume(
    shared: Arc<Shared>,
    mut client: v1::queue_service_client::QueueServiceClient<tonic::transport::Channel>,
    worker: u32,
    pages: Times,
) -> anyhow::Result<()> {
    let mut patience = Patience::new();
    while !shared.is_done() {
        let asked = now();
        let request =
            v1::GetActiveTopicsRequest { namespace: namespace(), page_size: PAGE, ..Default::default() };
        let active = async { Ok(client.get_active_topics(request).await?) };
        let active = within("active topics", Duration::ZERO, active).await?.into_inner().topics;
        let took = asked.elapsed().as_micros() as u64;
        pages.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(took);
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
        let mut acks = Vec::with_capacity(count);
        for item in items {
            let topic = topic_number(&item.topic)?;
            shared.ledger.deliver(&Delivered { topic, payload: item.payload })?;
            acks.push(v1::Ack { receipt: item.receipt });
        }
        let answer = async { Ok(client.ack(v1::AckRequest { namespace: namespace(), acks }).await?) };
        let results = within("ack", Duration::ZERO, answer).await?;
        let refused = results.into_inner().results.into_iter().find_map(|result| result.error);
        ensure!(refused.is_none(), "an ack was refused: {refused:?}");
        shared.settled.fetch_add(count as u64, Ordering::Relaxed);
        shared.room.add(count);
    }
    Ok(())
}
