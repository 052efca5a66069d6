//! The lifecycle over very many topics: consumers ask which are active, and pull from those.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use forebay_proto::v1;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use super::lifecycle::Span;
use crate::{
    outcome::{LONGEST_US, Outcome},
    system::{
        Delivered, System,
        forebay::{Forebay, namespace, topic_number},
    },
    usage::Usage,
    workload::{Load, Shared, finish, now, start_producers},
};

/// Topics a page of `GetActiveTopics`, and demands a dequeue.
const PAGE: u32 = 100;
/// How long a consumer waits when nothing is active.
const PAUSE: Duration = Duration::from_millis(5);

type Times = Arc<Mutex<Histogram<u64>>>;

/// Runs it; each topic holds an item from the start, and stays known.
pub async fn run(system: &Forebay, load: &Load, span: Span) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    let pages = Times::new(Mutex::new(Histogram::new_with_bounds(1, LONGEST_US, 3)?));
    let mut producers = start_producers(&shared, system, None, None).await?;
    let mut consumers = JoinSet::new();
    for worker in 0..load.consumers {
        consumers.spawn(consume(shared.clone(), system.client(), worker, pages.clone()));
    }
    let measure = async {
        tokio::time::sleep(span.warm_up).await;
        pages.lock().unwrap_or_else(PoisonError::into_inner).reset();
        let (from, settled, usage) = (now(), shared.settled(), Usage::now(&system.parts()));
        tokio::time::sleep(span.measured).await;
        let usage = Usage::now(&system.parts()).since(&usage);
        let mut outcome = Outcome::of_items(shared.settled() - settled, from.elapsed(), usage);
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
    shared.gate.close();
    finish(&mut producers).await?;
    shared.sent.store(true, Ordering::Release);
    finish(&mut consumers).await?;
    shared.ledger.close()?;
    Ok(outcome)
}

async fn consume(
    shared: Arc<Shared>,
    mut client: v1::queue_service_client::QueueServiceClient<tonic::transport::Channel>,
    worker: u32,
    pages: Times,
) -> anyhow::Result<()> {
    while !shared.is_done() {
        let asked = now();
        let request =
            v1::GetActiveTopicsRequest { namespace: namespace(), page_size: PAGE, ..Default::default() };
        let active = client.get_active_topics(request).await.context("active topics")?.into_inner().topics;
        let took = asked.elapsed().as_micros() as u64;
        pages.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(took);
        if active.is_empty() {
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
        let items = client.dequeue(request).await.context("dequeue")?.into_inner().items;
        if items.is_empty() {
            continue;
        }
        let count = items.len();
        let mut acks = Vec::with_capacity(count);
        for item in items {
            let topic = topic_number(&item.topic)?;
            shared.ledger.deliver(&Delivered { topic, payload: item.payload })?;
            acks.push(v1::Ack { receipt: item.receipt });
        }
        let results = client.ack(v1::AckRequest { namespace: namespace(), acks }).await.context("ack")?;
        let refused = results.into_inner().results.into_iter().find_map(|result| result.error);
        ensure!(refused.is_none(), "an ack was refused: {refused:?}");
        shared.settled.fetch_add(count as u64, Ordering::Relaxed);
        shared.room.add(count);
    }
    Ok(())
}
