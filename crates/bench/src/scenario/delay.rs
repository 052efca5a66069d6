//! Items that are due later: how late they are delivered to consumers that wait.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, ensure};
use hdrhistogram::Histogram;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::task::JoinSet;

use super::lifecycle::Span;
use crate::{
    outcome::{LONGEST_US, Outcome},
    payload::Head,
    system::{Consumer, Item, Producer, System},
    usage::Usage,
    workload::{Load, Shared, finish, now},
};

/// The shortest delay; the longest is three times that.
const DELAY: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_millis(500);

type Times = Arc<Mutex<Histogram<u64>>>;

/// Runs it with so many items a second that become due.
pub async fn run(system: &dyn System, load: &Load, span: Span, rate: u32) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    let clock = Clock { start: now(), wall: wall() };
    let times = Times::new(Mutex::new(Histogram::new_with_bounds(1, LONGEST_US, 3)?));
    let mut consumers = JoinSet::new();
    for worker in 0..load.consumers {
        let consumer = system.consumer(load.share(worker, load.consumers)).await?;
        consumers.spawn(consume(shared.clone(), consumer, clock, times.clone()));
    }
    let until = span.warm_up + span.measured;
    let every = Duration::from_secs(1) * load.batch as u32 * load.producers / rate;
    let mut producers = JoinSet::new();
    for worker in 0..load.producers {
        let first = every * worker / load.producers;
        producers.spawn(produce(
            shared.clone(),
            system.producer().await?,
            worker,
            clock,
            first,
            every,
            until,
        ));
    }
    tokio::time::sleep_until((clock.start + span.warm_up + DELAY * 2).into()).await;
    let (from, settled, usage) = (now(), shared.settled(), Usage::now(&system.parts()));
    finish(&mut producers).await?;
    let usage = Usage::now(&system.parts()).since(&usage);
    let settled = shared.settled() - settled;
    let rate = settled as f64 / from.elapsed().as_secs_f64();
    shared.sent.store(true, Ordering::Release);
    finish(&mut consumers).await?;
    shared.ledger.close()?;
    let mut outcome = Outcome { figures: Vec::new(), usage };
    outcome.quantiles(&times.lock().unwrap_or_else(PoisonError::into_inner));
    outcome.more("throughput", "items/s", rate);
    outcome.costs(settled);
    Ok(outcome)
}

/// The wall clock that due times are given in, and what it showed at the start.
#[derive(Debug, Clone, Copy)]
struct Clock {
    start: Instant,
    wall: SystemTime,
}

#[expect(clippy::disallowed_methods, reason = "due times are wall times")]
fn wall() -> SystemTime {
    SystemTime::now()
}

async fn produce(
    shared: Arc<Shared>,
    mut producer: Box<dyn Producer>,
    worker: u32,
    clock: Clock,
    first: Duration,
    every: Duration,
    until: Duration,
) -> anyhow::Result<()> {
    let load = &shared.load;
    let topics = load.share(worker, load.producers);
    let mut random = StdRng::seed_from_u64(load.seed ^ u64::from(worker) << 32);
    let mut at = first;
    for &topic in topics.iter().cycle() {
        if at > until {
            break;
        }
        tokio::time::sleep_until((clock.start + at).into()).await;
        let number = shared.ledger.number(load.batch);
        let item = |number| {
            let delay = DELAY + DELAY * 2 * (random.next_u32() % 10_000) / 10_000;
            let due = at + delay;
            let priority = (number % u64::from(load.priorities)) as u8;
            let at_us = due.as_micros() as u64;
            let payload = shared.ledger.payloads().make(Head { number, topic, priority, at_us });
            Item { priority, payload, due: Some(clock.wall + due) }
        };
        let items = (number..number + load.batch as u64).map(item).collect();
        producer.put(topic, items).await.context("enqueue")?;
        shared.ledger.confirm(number, load.batch);
        at += every;
    }
    Ok(())
}

async fn consume(
    shared: Arc<Shared>,
    mut consumer: Box<dyn Consumer>,
    clock: Clock,
    times: Times,
) -> anyhow::Result<()> {
    loop {
        let items = consumer.take(shared.load.batch, WAIT).await.context("dequeue")?;
        let arrived = clock.start.elapsed();
        if items.is_empty() && shared.is_done() {
            return Ok(());
        }
        for item in &items {
            let head = shared.ledger.deliver(item)?;
            let due = Duration::from_micros(head.at_us);
            ensure!(arrived >= due, "item {} came {:?} before it was due", head.number, due - arrived);
            let late = (arrived - due).as_micros() as u64;
            times.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(late);
        }
        consumer.ack().await.context("ack")?;
        shared.settled.fetch_add(items.len() as u64, Ordering::Relaxed);
    }
}
