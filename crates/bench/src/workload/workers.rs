//! The loops of producers and consumers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::task::JoinSet;

use super::{
    stall::{StallDetector, with_timeout},
    state::RunState,
};
use crate::{
    delivery_check::OrderCheck,
    limit::InFlightLimit,
    load::Load,
    payload::Header,
    system::{BenchDelivery, Consumer, Item, Producer, System},
};

/// How long a consumer waits for an item before it checks whether the run is over.
const DEQUEUE_WAIT: Duration = Duration::from_millis(200);

/// Enqueues until it must stop or has sent `limit` items. Priorities are random unless `priority` is given.
async fn produce(
    state: Arc<RunState>,
    mut producer: Box<dyn Producer>,
    worker: u32,
    limit: Option<u64>,
    priority: Option<u8>,
) -> anyhow::Result<()> {
    let load = &state.load;
    let topics = load.share(worker, load.producers);
    let mut random = StdRng::seed_from_u64(load.seed ^ u64::from(worker) << 32);
    let mut sent = 0;
    for &topic in topics.iter().cycle() {
        let batch = limit.map_or(load.batch as u64, |limit| (limit - sent).min(load.batch as u64)) as usize;
        if batch == 0 || state.stop_producing.is_set() {
            break;
        }
        if !state.in_flight_limit.acquire(batch).await {
            break;
        }
        let first = state.delivery_check.next_numbers(batch);
        let item = |number| {
            let priority = priority.unwrap_or((random.next_u32() % u32::from(load.priorities)) as u8);
            let header = Header { number, topic, priority, at_us: 0 };
            Item { priority, payload: state.delivery_check.payloads().make(header), due: None }
        };
        let items = (first..first + batch as u64).map(item).collect();
        with_timeout("enqueue", Duration::ZERO, producer.put(topic, items)).await?;
        state.delivery_check.confirm(first, batch);
        state.dequeue_limit.get().into_iter().for_each(|limit| limit.release(batch));
        sent += batch as u64;
    }
    Ok(())
}

/// Dequeues and acks until everything that was sent has been acked. `check` sees each answer at once. After
/// `wait` without an item the loop checks whether the run is over.
pub async fn consume(
    state: Arc<RunState>,
    mut consumer: Box<dyn Consumer>,
    wait: Duration,
    mut check: impl FnMut(&[BenchDelivery]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut stall = StallDetector::new();
    let (batch, limit) = (state.load.batch, state.dequeue_limit.get());
    while !state.stop_consuming.is_set() {
        if let Some(limit) = limit
            && !limit.acquire(batch).await
        {
            break;
        }
        let items = with_timeout("dequeue", wait, consumer.take(batch, wait)).await?;
        if let Some(limit) = limit {
            balance(limit, batch, items.len()).await;
        }
        if items.is_empty() {
            if state.is_done() {
                return Ok(());
            }
            stall.check(&state)?;
            continue;
        }
        check(&items)?;
        with_timeout("ack", Duration::ZERO, consumer.ack()).await?;
        state.settled.fetch_add(items.len() as u64, Ordering::Relaxed);
        state.in_flight_limit.release(items.len());
    }
    Ok(())
}

/// Charges the limit for the items that came instead of those that were asked for. A consumer of many topics
/// may get more than it asked for.
async fn balance(limit: &InFlightLimit, asked: usize, got: usize) {
    limit.release(asked.saturating_sub(got));
    limit.acquire(got.saturating_sub(asked)).await;
}

/// The producers of a run.
pub async fn connect_producers(load: &Load, system: &dyn System) -> anyhow::Result<Vec<Box<dyn Producer>>> {
    let mut producers = Vec::new();
    for _ in 0..load.producers {
        producers.push(system.producer().await?);
    }
    Ok(producers)
}

/// The consumers of a run, each with its share of the topics.
pub async fn connect_consumers(load: &Load, system: &dyn System) -> anyhow::Result<Vec<Box<dyn Consumer>>> {
    let mut consumers = Vec::new();
    for worker in 0..load.consumers {
        consumers.push(system.consumer(load.share(worker, load.consumers)).await?);
    }
    Ok(consumers)
}

/// Connects all producers, then starts them at the same time. Together they send `limit` items, or send until
/// they must stop.
pub async fn start_producers(
    state: &Arc<RunState>,
    system: &dyn System,
    limit: Option<u64>,
    priority: Option<u8>,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let workers = state.load.producers;
    let producers = connect_producers(&state.load, system).await?;
    let mut tasks = JoinSet::new();
    for (worker, producer) in (0..workers).zip(producers) {
        let share = limit.map(|limit| {
            let each = limit / u64::from(workers);
            each + u64::from(u64::from(worker) < limit % u64::from(workers))
        });
        tasks.spawn(produce(state.clone(), producer, worker, share, priority));
    }
    Ok(tasks)
}

/// Starts the consumers of a run. If `strict`, the order of everything that a consumer gets is checked. If
/// not, the order inside each answer is checked, provided that the queue orders its answers.
pub async fn start_consumers(
    state: &Arc<RunState>,
    system: &dyn System,
    strict: bool,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let mut tasks = JoinSet::new();
    let load = &state.load;
    for consumer in connect_consumers(load, system).await? {
        let mut order = (strict || system.batches_are_ordered())
            .then(|| OrderCheck::new(system.order(), load.producers <= load.topics));
        let shared = state.clone();
        let check = move |items: &[BenchDelivery]| {
            if !strict && let Some(order) = &mut order {
                order.restart();
            }
            for item in items {
                let header = shared.delivery_check.check(item)?;
                if let Some(order) = &mut order {
                    order.check(header)?;
                }
            }
            Ok(())
        };
        tasks.spawn(consume(state.clone(), consumer, DEQUEUE_WAIT, check));
    }
    Ok(tasks)
}
