//! Items that are due later: how late they are delivered to consumers that wait.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use anyhow::ensure;
use hdrhistogram::Histogram;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::task::JoinSet;

use super::lifecycle::Span;
use crate::{
    outcome::{LONGEST_US, Outcome},
    payload::Head,
    system::{Consumer, Item, Producer, System},
    usage::Usage,
    workload::{Load, Patience, Shared, finish, now, within},
};

/// Delays are drawn evenly between these.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3);
const WAIT: Duration = Duration::from_millis(500);

type Times = Arc<Mutex<Histogram<u64>>>;

/// Runs it with so many items a second that become due.
pub async fn run(system: &dyn System, load: &Load, span: Span, rate: u32) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    let times = Times::new(Mutex::new(Histogram::new_with_bounds(1, LONGEST_US, 3)?));
    let mut takers = Vec::new();
    for worker in 0..load.consumers {
        takers.push(system.consumer(load.share(worker, load.consumers)).await?);
    }
    let mut putters = Vec::new();
    for _ in 0..load.producers {
        putters.push(system.producer().await?);
    }
    // The timetable begins when everyone is connected. As many become due in each moment of the measured span:
    // it begins when the longest delays have passed, and items are sent until the shortest would end after it.
    let begin = span.warm_up + LONGEST;
    let end = begin + span.measured;
    let clock = Clock { start: now(), wall: wall() };
    let mut consumers = JoinSet::new();
    for consumer in takers {
        consumers.spawn(consume(shared.clone(), consumer, clock, begin..end, times.clone()));
    }
    let every = Duration::from_secs(1) * load.batch as u32 * load.producers / rate;
    let mut producers = JoinSet::new();
    for (worker, producer) in (0..load.producers).zip(putters) {
        let first = every * worker / load.producers;
        let turns = Turns { worker, first, every, until: end - SHORTEST };
        producers.spawn(produce(shared.clone(), producer, clock, turns));
    }
    let measure = async {
        tokio::time::sleep_until((clock.start + begin).into()).await;
        let (from, settled, usage) = (now(), shared.settled(), Usage::now(&system.parts()));
        tokio::time::sleep_until((clock.start + end).into()).await;
        let usage = Usage::now(&system.parts()).since(&usage);
        (shared.settled() - settled, from.elapsed(), usage)
    };
    let (settled, took, usage) = tokio::select! {
        biased;
        measured = measure => measured,
        Err(error) = finish(&mut producers) => return Err(error),
        Err(error) = finish(&mut consumers) => return Err(error),
    };
    finish(&mut producers).await?;
    shared.sent.store(true, Ordering::Release);
    finish(&mut consumers).await?;
    shared.ledger.close()?;
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(!times.is_empty(), "no item was due in {:?}: a longer --measured, or more --rate", span.measured);
    let mut outcome = Outcome { figures: Vec::new(), usage };
    outcome.quantiles(&times);
    outcome.more("throughput", "items/s", settled as f64 / took.as_secs_f64());
    outcome.costs(settled);
    Ok(outcome)
}

/// When a producer makes its calls.
#[derive(Debug, Clone, Copy)]
struct Turns {
    worker: u32,
    first: Duration,
    every: Duration,
    until: Duration,
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
    clock: Clock,
    turns: Turns,
) -> anyhow::Result<()> {
    let load = &shared.load;
    let topics = load.share(turns.worker, load.producers);
    let mut random = StdRng::seed_from_u64(load.seed ^ u64::from(turns.worker) << 32);
    let mut at = turns.first;
    for &topic in topics.iter().cycle() {
        if at >= turns.until {
            break;
        }
        tokio::time::sleep_until((clock.start + at).into()).await;
        let number = shared.ledger.number(load.batch);
        let item = |number| {
            let delay = SHORTEST + (LONGEST - SHORTEST) * (random.next_u32() % 10_000) / 10_000;
            let due = at + delay;
            let priority = (number % u64::from(load.priorities)) as u8;
            let at_us = due.as_micros() as u64;
            let payload = shared.ledger.payloads().make(Head { number, topic, priority, at_us });
            Item { priority, payload, due: Some(clock.wall + due) }
        };
        let items = (number..number + load.batch as u64).map(item).collect();
        within("enqueue", Duration::ZERO, producer.put(topic, items)).await?;
        shared.ledger.confirm(number, load.batch);
        at += turns.every;
    }
    Ok(())
}

async fn consume(
    shared: Arc<Shared>,
    mut consumer: Box<dyn Consumer>,
    clock: Clock,
    measured: Range<Duration>,
    times: Times,
) -> anyhow::Result<()> {
    let mut patience = Patience::new();
    loop {
        let items = within("dequeue", WAIT, consumer.take(shared.load.batch, WAIT)).await?;
        let arrived = clock.start.elapsed();
        if items.is_empty() {
            if shared.is_done() {
                return Ok(());
            }
            patience.check(&shared)?;
            continue;
        }
        for item in &items {
            let head = shared.ledger.deliver(item)?;
            let due = Duration::from_micros(head.at_us);
            ensure!(arrived >= due, "item {} came {:?} before it was due", head.number, due - arrived);
            let late = (arrived - due).as_micros() as u64;
            if measured.contains(&due) {
                times.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(late);
            }
        }
        within("ack", Duration::ZERO, consumer.ack()).await?;
        shared.settled.fetch_add(items.len() as u64, Ordering::Relaxed);
    }
}
