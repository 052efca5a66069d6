//! Items that are due later: how late they are delivered to consumers that wait.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::ensure;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::task::JoinSet;

use crate::{
    outcome::Outcome,
    payload::Head,
    system::{Delivered, Item, Producer, System},
    times::Times,
    workload::{
        Load, Measured, Shared, Span, connect_consumers, connect_producers, consume, drain, measure, now,
        within,
    },
};

/// Delays are drawn evenly between these.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3);
const WAIT: Duration = Duration::from_millis(500);

/// Runs it with so many items a second that become due.
pub async fn run(system: &dyn System, load: &Load, span: Span, rate: u32) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    let times = Times::new()?;
    let takers = connect_consumers(load, system).await?;
    let putters = connect_producers(load, system).await?;
    // The timetable begins when everyone is connected. As many become due in each moment of the measured span:
    // it begins when the longest delays have passed, and items are sent until the shortest would end after it.
    let begin = span.warm_up + LONGEST;
    let end = begin + span.measured;
    let clock = Clock { start: now(), wall: wall() };
    let mut consumers = JoinSet::new();
    for consumer in takers {
        let (of, times) = (shared.clone(), times.clone());
        let look = move |items: &[Delivered]| {
            let arrived = clock.start.elapsed();
            for item in items {
                let head = of.ledger.deliver(item)?;
                let due = Duration::from_micros(head.at_us);
                ensure!(arrived >= due, "item {} came {:?} before it was due", head.number, due - arrived);
                if (begin..end).contains(&due) {
                    times.record(arrived - due);
                }
            }
            Ok(())
        };
        consumers.spawn(consume(shared.clone(), consumer, WAIT, look));
    }
    let every = Duration::from_secs(1) * load.batch as u32 * load.producers / rate;
    let mut producers = JoinSet::new();
    for (worker, producer) in (0..load.producers).zip(putters) {
        let first = every * worker / load.producers;
        let turns = Turns { worker, first, every, until: end - SHORTEST };
        producers.spawn(produce(shared.clone(), producer, clock, turns));
    }
    // The warm-up that the queue sees is the time until as much becomes due as ever.
    let from_now = Span { warm_up: begin.saturating_sub(clock.start.elapsed()), ..span };
    let workers = [&mut producers, &mut consumers];
    let Measured { settled, took, usage, .. } = measure(&shared, system, from_now, workers, || {}).await?;
    drain(&shared, &mut producers, &mut consumers).await?;
    ensure!(
        !times.with(|times| times.is_empty()),
        "no item was due in {:?}: a longer --measured, or more --rate",
        span.measured
    );
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
