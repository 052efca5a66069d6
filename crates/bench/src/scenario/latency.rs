//! Single items at a fixed rate to consumers that wait: how long from the moment an item was meant to be sent
//! until it is delivered. The sender keeps to its timetable whatever the queue does, so a stall counts for
//! every item that should have been sent meanwhile.

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
    outcome::Outcome,
    payload::Head,
    system::{Delivered, Item, Producer, System},
    times::Times,
    usage::Usage,
    workload::{Load, Shared, Span, connect_consumers, connect_producers, consume, drain, now, within},
};

/// How long a consumer waits before it looks whether the run is over.
const WAIT: Duration = Duration::from_millis(500);

/// The shortest warm-up: a RabbitMQ that has just started stalls once in its first seconds, which says nothing
/// of how it goes on. The same for all, so that all are measured alike.
const LEAST_WARM_UP: Duration = Duration::from_secs(4);

/// Runs it with so many items a second.
pub async fn run(system: &dyn System, load: &Load, span: Span, rate: u32) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    let span = Span { warm_up: span.warm_up.max(LEAST_WARM_UP), ..span };
    let times = Times::new()?;
    let mut producers = JoinSet::new();
    let mut bells = Vec::new();
    for (worker, producer) in (0..).zip(connect_producers(load, system).await?) {
        let (bell, rings) = mpsc::unbounded_channel();
        bells.push(bell);
        producers.spawn(produce(shared.clone(), producer, worker, rings));
    }
    let takers = connect_consumers(load, system).await?;
    // The timetable begins when everyone is connected.
    let start = now();
    let mut consumers = JoinSet::new();
    for consumer in takers {
        let (of, times) = (shared.clone(), times.clone());
        let look = move |items: &[Delivered]| {
            let arrived = start.elapsed();
            for item in items {
                let intended = Duration::from_micros(of.ledger.deliver(item)?.at_us);
                if intended >= span.warm_up {
                    times.record(arrived.saturating_sub(intended));
                }
            }
            Ok(())
        };
        consumers.spawn(consume(shared.clone(), consumer, WAIT, look));
    }
    let total = (u64::from(rate) * (span.warm_up + span.measured).as_millis() as u64) / 1_000;
    let every = Duration::from_secs(1) / rate;
    let timetable = tokio::task::spawn_blocking(move || {
        for turn in 0..total {
            let at = every * turn as u32;
            pause_until(start + at);
            // A producer that is gone has failed, which is told where it is waited for.
            let _ = bells[turn as usize % bells.len()].send(at);
        }
    });
    tokio::time::sleep_until((start + span.warm_up).into()).await;
    let before = Usage::now(&system.parts());
    timetable.await?;
    let usage = Usage::now(&system.parts()).since(&before);
    drain(&shared, &mut producers, &mut consumers).await?;
    ensure!(
        !times.with(|times| times.is_empty()),
        "no item was to be sent in {:?}: a longer --measured, or more --rate",
        span.measured
    );
    let mut outcome = Outcome { figures: Vec::new(), usage };
    outcome.quantiles(&times);
    outcome.costs(u64::from(rate) * span.measured.as_millis() as u64 / 1_000);
    Ok(outcome)
}

/// Tokio's timers have a grain of a millisecond, which is as long as what is to be measured here.
#[expect(clippy::disallowed_methods, reason = "on a thread of its own, outside of the runtime")]
fn pause_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(now()));
}

async fn produce(
    shared: Arc<Shared>,
    mut producer: Box<dyn Producer>,
    worker: u32,
    mut rings: UnboundedReceiver<Duration>,
) -> anyhow::Result<()> {
    let topics = shared.load.share(worker, shared.load.producers);
    let mut sent = 0;
    while let Some(at) = rings.recv().await {
        let topic = topics[sent % topics.len()];
        let number = shared.ledger.number(1);
        let priority = (number % u64::from(shared.load.priorities)) as u8;
        let payload =
            shared.ledger.payloads().make(Head { number, topic, priority, at_us: at.as_micros() as u64 });
        let item = Item { priority, payload, due: None };
        within("enqueue", Duration::ZERO, producer.put(topic, vec![item])).await?;
        shared.ledger.confirm(number, 1);
        sent += 1;
    }
    Ok(())
}
