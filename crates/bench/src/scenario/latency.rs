//! Measures the time from an item's intended sending to its delivery, with single items at a fixed rate and
//! consumers that wait. The schedule does not depend on the queue, so a stall counts for every item that
//! should have been sent in that time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use tokio::{
    sync::mpsc::{self, UnboundedReceiver},
    task::JoinSet,
};

use crate::{
    load::{Load, Phases},
    payload::Header,
    round_result::RoundResult,
    system::{BenchDelivery, Item, Producer, System},
    times::{SharedHistogram, now},
    usage::Usage,
    workload::{
        measure::drain,
        stall::with_timeout,
        state::RunState,
        workers::{connect_consumers, connect_producers, consume},
    },
};

/// How long a consumer waits for an item before it checks whether the run is over.
const DEQUEUE_WAIT: Duration = Duration::from_millis(500);

/// The shortest warm-up, the same for all candidates: RabbitMQ stalls once in its first seconds.
const WARM_UP_MIN: Duration = Duration::from_secs(4);

/// Measures the latency at `rate` items per second.
pub async fn run(system: &dyn System, load: &Load, phases: Phases, rate: u32) -> anyhow::Result<RoundResult> {
    let state = RunState::new(load)?;
    let phases = Phases { warm_up: phases.warm_up.max(WARM_UP_MIN), ..phases };
    let times = SharedHistogram::new()?;
    let mut producers = JoinSet::new();
    let mut schedules = Vec::new();
    for (worker, producer) in (0..).zip(connect_producers(load, system).await?) {
        let (schedule, times_due) = mpsc::unbounded_channel();
        schedules.push(schedule);
        producers.spawn(produce(state.clone(), producer, worker, times_due));
    }
    let connected = connect_consumers(load, system).await?;
    // The schedule starts when all are connected.
    let start = now();
    let mut consumers = JoinSet::new();
    for consumer in connected {
        let (of, times) = (state.clone(), times.clone());
        let check = move |items: &[BenchDelivery]| {
            let arrived = start.elapsed();
            for item in items {
                let intended = Duration::from_micros(of.delivery_check.check(item)?.at_us);
                if intended >= phases.warm_up {
                    times.record(arrived.saturating_sub(intended));
                }
            }
            Ok(())
        };
        consumers.spawn(consume(state.clone(), consumer, DEQUEUE_WAIT, check));
    }
    let total = (u64::from(rate) * (phases.warm_up + phases.measured).as_millis() as u64) / 1_000;
    let every = Duration::from_secs(1) / rate;
    let scheduler = tokio::task::spawn_blocking(move || {
        for turn in 0..total {
            let at = every * turn as u32;
            pause_until(start + at);
            // A producer that has ended has failed; its error is returned by `drain`.
            let _ = schedules[turn as usize % schedules.len()].send(at);
        }
    });
    tokio::time::sleep_until((start + phases.warm_up).into()).await;
    let before = Usage::now(&system.processes());
    scheduler.await?;
    let usage = Usage::now(&system.processes()).since(&before);
    drain(&state, &mut producers, &mut consumers).await?;
    ensure!(
        !times.with(|times| times.is_empty()),
        "no item was due in {:?}: use a longer --measured or a higher --rate",
        phases.measured
    );
    let mut result = RoundResult { metrics: Vec::new(), usage };
    result.add_quantiles(&times);
    result.add_cpu_time(u64::from(rate) * phases.measured.as_millis() as u64 / 1_000);
    Ok(result)
}

/// Sleeps with more precision than a timer of Tokio, whose resolution of a millisecond is as long as the
/// latencies.
#[expect(clippy::disallowed_methods, reason = "runs on its own thread, outside of the runtime")]
fn pause_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(now()));
}

async fn produce(
    state: Arc<RunState>,
    mut producer: Box<dyn Producer>,
    worker: u32,
    mut times_due: UnboundedReceiver<Duration>,
) -> anyhow::Result<()> {
    let topics = state.load.share(worker, state.load.producers);
    let mut sent = 0;
    while let Some(at) = times_due.recv().await {
        let topic = topics[sent % topics.len()];
        let number = state.delivery_check.next_numbers(1);
        let priority = (number % u64::from(state.load.priorities)) as u8;
        let payload = state.delivery_check.payloads().make(Header {
            number,
            topic,
            priority,
            at_us: at.as_micros() as u64,
        });
        let item = Item { priority, payload, due: None };
        with_timeout("enqueue", Duration::ZERO, producer.put(topic, vec![item])).await?;
        state.delivery_check.confirm(number, 1);
        sent += 1;
    }
    Ok(())
}
