//! Single items at a fixed rate to consumers that wait: how long from the moment an item was meant to be sent
//! until it is delivered. The sender keeps to its timetable whatever the queue does, so a stall counts for
//! every item that should have been sent meanwhile.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::ensure;
use hdrhistogram::Histogram;
use tokio::{
    sync::mpsc::{self, UnboundedReceiver},
    task::JoinSet,
};

use super::lifecycle::Span;
use crate::{
    outcome::{LONGEST_US, Outcome},
    payload::Head,
    system::{Consumer, Item, Producer, System},
    usage::Usage,
    workload::{Load, Patience, Shared, finish, now, within},
};

/// How long a consumer waits before it looks whether the run is over.
const WAIT: Duration = Duration::from_millis(500);

/// The shortest warm-up: a RabbitMQ that has just started stalls once in its first seconds, which says nothing
/// of how it goes on. The same for all, so that all are measured alike.
const LEAST_WARM_UP: Duration = Duration::from_secs(4);

/// Times in microseconds, of items that were to be sent in the measured span.
type Times = Arc<Mutex<Histogram<u64>>>;

/// Runs it with so many items a second.
pub async fn run(system: &dyn System, load: &Load, span: Span, rate: u32) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    let span = Span { warm_up: span.warm_up.max(LEAST_WARM_UP), ..span };
    let times = Times::new(Mutex::new(Histogram::new_with_bounds(1, LONGEST_US, 3)?));
    let mut producers = JoinSet::new();
    let mut bells = Vec::new();
    for worker in 0..load.producers {
        let (bell, rings) = mpsc::unbounded_channel();
        bells.push(bell);
        producers.spawn(produce(shared.clone(), system.producer().await?, worker, rings));
    }
    let mut all = Vec::new();
    for worker in 0..load.consumers {
        all.push(system.consumer(load.share(worker, load.consumers)).await?);
    }
    // The timetable begins when everyone is connected.
    let start = now();
    let mut consumers = JoinSet::new();
    for consumer in all {
        consumers.spawn(consume(shared.clone(), consumer, start, span, times.clone()));
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
    finish(&mut producers).await?;
    shared.sent.store(true, Ordering::Release);
    finish(&mut consumers).await?;
    shared.ledger.close()?;
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(
        !times.is_empty(),
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

async fn consume(
    shared: Arc<Shared>,
    mut consumer: Box<dyn Consumer>,
    start: Instant,
    span: Span,
    times: Times,
) -> anyhow::Result<()> {
    let mut patience = Patience::new();
    loop {
        let items = within("dequeue", WAIT, consumer.take(shared.load.batch, WAIT)).await?;
        let arrived = start.elapsed();
        if items.is_empty() {
            if shared.is_done() {
                return Ok(());
            }
            patience.check(&shared)?;
            continue;
        }
        for item in &items {
            let intended = Duration::from_micros(shared.ledger.deliver(item)?.at_us);
            if intended >= span.warm_up {
                let late = arrived.saturating_sub(intended).as_micros() as u64;
                times.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(late);
            }
        }
        within("ack", Duration::ZERO, consumer.ack()).await?;
    }
}
