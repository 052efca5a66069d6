//! Measures the lifecycle over many topics: consumers ask which topics are active and dequeue from those, or
//! by the prefix of all.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use forebay_proto::v1;
use tokio::task::JoinSet;

use crate::{
    load::{Load, Phases},
    payload::Header,
    round_result::RoundResult,
    system::{
        BenchDelivery,
        forebay::{Client, Forebay, ack, enqueue, namespace, topic_name, topic_number, topic_prefix},
    },
    times::{SharedHistogram, now},
    workload::{
        measure::{LoopMeasurements, drain, measure},
        stall::{StallDetector, with_timeout},
        state::RunState,
        workers::start_producers,
    },
};

/// Topics per page of `GetActiveTopics`.
const PAGE_SIZE: u32 = 100;
/// How long a consumer waits when no topic is active.
const PAUSE: Duration = Duration::from_millis(5);

/// How consumers choose the topics from which they dequeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// They ask which topics are active.
    Active,
    /// They name what all topics begin with.
    Prefix,
}

/// Measures the lifecycle. Each topic has one item from the start, less urgent than all others, so that every
/// topic stays known.
pub async fn run(
    system: &Forebay,
    load: &Load,
    phases: Phases,
    selection: Selection,
) -> anyhow::Result<RoundResult> {
    let state = RunState::new(load)?;
    let pages = SharedHistogram::new()?;
    fill(&state, system).await?;
    let mut producers = start_producers(&state, system, None, None).await?;
    let mut consumers = JoinSet::new();
    for worker in 0..load.consumers {
        let (state, client, pages) = (state.clone(), system.client(), pages.clone());
        consumers.spawn(async move {
            match selection {
                Selection::Active => consume(state, client, worker, pages).await,
                Selection::Prefix => consume_by_prefix(state, client).await,
            }
        });
    }
    let workers = [&mut producers, &mut consumers];
    let measured = measure(&state, system, phases, workers, || pages.reset()).await?;
    let page = pages.with(|pages| pages.value_at_quantile(0.99)) as f64 / 1_000.0;
    state.stop_producers();
    drain(&state, &mut producers, &mut consumers).await?;
    // The initial items are delivered too, although they were not enqueued in the measured phase.
    let LoopMeasurements { settled, confirmed, took, usage } = measured;
    let mut result = RoundResult::of_items(settled.min(confirmed), took, usage);
    if selection == Selection::Active {
        result.add_less_is_better("page p99", "ms", page);
    }
    Ok(result)
}

/// Enqueues one item into each topic, so that all topics are active when the run begins: in its few seconds
/// the producers reach only some of them.
async fn fill(state: &RunState, system: &Forebay) -> anyhow::Result<()> {
    let load = &state.load;
    let topics: Vec<u32> = (0..load.topics).collect();
    for topics in topics.chunks(load.batch) {
        let first = state.delivery_check.next_numbers(topics.len());
        let item = |(number, &topic): (u64, &u32)| {
            let priority = load.priorities;
            let payload = state.delivery_check.payloads().make(Header { number, topic, priority, at_us: 0 });
            let topic = topic_name(topic);
            v1::EnqueueItem { topic, priority: i32::from(priority), payload, ..Default::default() }
        };
        let items = (first..).zip(topics).map(item).collect();
        let request = v1::EnqueueRequest { namespace: namespace(), items, ..Default::default() };
        state.in_flight_limit.acquire(topics.len()).await;
        with_timeout("enqueue", Duration::ZERO, enqueue(&mut system.client(), request)).await?;
        state.delivery_check.confirm(first, topics.len());
    }
    Ok(())
}

async fn consume(
    state: Arc<RunState>,
    mut client: Client,
    worker: u32,
    pages: SharedHistogram,
) -> anyhow::Result<()> {
    let mut stall = StallDetector::new();
    while !state.is_done() {
        let asked = now();
        let request =
            v1::GetActiveTopicsRequest { namespace: namespace(), page_size: PAGE_SIZE, ..Default::default() };
        let active = async { Ok(client.get_active_topics(request).await?) };
        let active = with_timeout("active topics", Duration::ZERO, active).await?.into_inner().topics;
        pages.record(asked.elapsed());
        if active.is_empty() {
            stall.check(&state)?;
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        // Consumers start at different positions of the page, so that they ask for different topics.
        let from = active.len() * worker as usize / state.load.consumers as usize;
        let mut left = state.load.batch as u32;
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
        if take(&state, &mut client, demands).await? == 0 {
            stall.check(&state)?;
        }
    }
    Ok(())
}

async fn consume_by_prefix(state: Arc<RunState>, mut client: Client) -> anyhow::Result<()> {
    let mut stall = StallDetector::new();
    while !state.is_done() {
        let selector = Some(v1::topic_demand::Selector::TopicPrefix(topic_prefix()));
        let demand = v1::TopicDemand { selector, max_items: state.load.batch as u32 };
        if take(&state, &mut client, vec![demand]).await? == 0 {
            stall.check(&state)?;
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Takes items and acks them. Returns how many.
async fn take(state: &RunState, client: &mut Client, demands: Vec<v1::TopicDemand>) -> anyhow::Result<usize> {
    let request = v1::DequeueRequest { namespace: namespace(), demands, ..Default::default() };
    let answer = async { Ok(client.dequeue(request).await?) };
    let items = with_timeout("dequeue", Duration::ZERO, answer).await?.into_inner().items;
    let count = items.len();
    if count == 0 {
        return Ok(0);
    }
    let mut receipts = Vec::with_capacity(count);
    for item in items {
        let topic = topic_number(&item.topic)?;
        state.delivery_check.check(&BenchDelivery { topic, payload: item.payload })?;
        receipts.push(item.receipt);
    }
    with_timeout("ack", Duration::ZERO, ack(client, receipts)).await?;
    state.settled.fetch_add(count as u64, Ordering::Relaxed);
    state.in_flight_limit.release(count);
    Ok(count)
}
