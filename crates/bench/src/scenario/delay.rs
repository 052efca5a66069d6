//! Measures how late items with a delivery time are delivered to consumers that wait.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::ensure;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::task::JoinSet;

use crate::{
    load::{Load, Phases},
    payload::Header,
    round_result::RoundResult,
    system::{BenchDelivery, Item, Producer, System},
    times::{SharedHistogram, now},
    workload::{
        measure::{LoopMeasurements, drain, measure},
        stall::with_timeout,
        state::RunState,
        workers::{connect_consumers, connect_producers, consume},
    },
};

/// Delays are drawn evenly between this and [`DELAY_MAX`].
const DELAY_MIN: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(3);
/// How long a consumer waits for an item before it checks whether the run is over.
const DEQUEUE_WAIT: Duration = Duration::from_millis(500);

/// Measures the lateness while `rate` items per second become due.
pub async fn run(system: &dyn System, load: &Load, phases: Phases, rate: u32) -> anyhow::Result<RoundResult> {
    let state = RunState::new(load)?;
    let times = SharedHistogram::new()?;
    let connected_consumers = connect_consumers(load, system).await?;
    let connected_producers = connect_producers(load, system).await?;
    // The schedule starts when all are connected. Items become due evenly over the whole measured phase: it
    // starts when the longest delay has passed, and items are sent until the shortest delay would end after
    // it.
    let begin = phases.warm_up + DELAY_MAX;
    let end = begin + phases.measured;
    let clock = Clock { start: now(), wall: wall() };
    let mut consumers = JoinSet::new();
    for consumer in connected_consumers {
        let (of, times) = (state.clone(), times.clone());
        let check = move |items: &[BenchDelivery]| {
            let arrived = clock.start.elapsed();
            for item in items {
                let header = of.delivery_check.check(item)?;
                let due = Duration::from_micros(header.at_us);
                ensure!(arrived >= due, "item {} was delivered {:?} too early", header.number, due - arrived);
                if (begin..end).contains(&due) {
                    times.record(arrived - due);
                }
            }
            Ok(())
        };
        consumers.spawn(consume(state.clone(), consumer, DEQUEUE_WAIT, check));
    }
    let every = Duration::from_secs(1) * load.batch as u32 * load.producers / rate;
    let mut producers = JoinSet::new();
    for (worker, producer) in (0..load.producers).zip(connected_producers) {
        let first = every * worker / load.producers;
        let schedule = Schedule { worker, first, every, until: end - DELAY_MIN };
        producers.spawn(produce(state.clone(), producer, clock, schedule));
    }
    // The warm-up lasts until items become due at the full rate.
    let from_now = Phases { warm_up: begin.saturating_sub(clock.start.elapsed()), ..phases };
    let workers = [&mut producers, &mut consumers];
    let LoopMeasurements { settled, took, usage, .. } =
        measure(&state, system, from_now, workers, || {}).await?;
    drain(&state, &mut producers, &mut consumers).await?;
    ensure!(
        !times.with(|times| times.is_empty()),
        "no item was due in {:?}: use a longer --measured or a higher --rate",
        phases.measured
    );
    let mut result = RoundResult { metrics: Vec::new(), usage };
    result.add_quantiles(&times);
    result.add_more_is_better("throughput", "items/s", settled as f64 / took.as_secs_f64());
    result.add_cpu_time(settled);
    Ok(result)
}

/// When a producer makes its calls.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    worker: u32,
    first: Duration,
    every: Duration,
    until: Duration,
}

/// The start of the run, on the monotonic clock and on the wall clock, in which delivery times are given.
#[derive(Debug, Clone, Copy)]
struct Clock {
    start: Instant,
    wall: SystemTime,
}

#[expect(clippy::disallowed_methods, reason = "delivery times are wall times")]
fn wall() -> SystemTime {
    SystemTime::now()
}

async fn produce(
    state: Arc<RunState>,
    mut producer: Box<dyn Producer>,
    clock: Clock,
    schedule: Schedule,
) -> anyhow::Result<()> {
    let load = &state.load;
    let topics = load.share(schedule.worker, load.producers);
    let mut random = StdRng::seed_from_u64(load.seed ^ u64::from(schedule.worker) << 32);
    let mut at = schedule.first;
    for &topic in topics.iter().cycle() {
        if at >= schedule.until {
            break;
        }
        tokio::time::sleep_until((clock.start + at).into()).await;
        let number = state.delivery_check.next_numbers(load.batch);
        let item = |number| {
            let delay = DELAY_MIN + (DELAY_MAX - DELAY_MIN) * (random.next_u32() % 10_000) / 10_000;
            let due = at + delay;
            let priority = (number % u64::from(load.priorities)) as u8;
            let at_us = due.as_micros() as u64;
            let payload = state.delivery_check.payloads().make(Header { number, topic, priority, at_us });
            Item { priority, payload, due: Some(clock.wall + due) }
        };
        let items = (number..number + load.batch as u64).map(item).collect();
        with_timeout("enqueue", Duration::ZERO, producer.put(topic, items)).await?;
        state.delivery_check.confirm(number, load.batch);
        at += schedule.every;
    }
    Ok(())
}
