//! Dequeues items while handler slots are free, and stops a consumer in order.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::Instant,
};

use super::{
    config::ConsumerConfig,
    delivery::Handler,
    handlers::{Handlers, stopped, stopping},
    open_deliveries::OpenDeliveries,
    report::{ConsumerReport, ReportCounters},
    settle,
};
use crate::{
    calls::dequeue::{Demand, DequeueCall, Dequeued},
    client::Client,
    error::Error,
};

/// Items of one dequeue.
const POLL_ITEMS_MAX: usize = 1_000;
/// Settlements that wait to be sent.
const SETTLEMENTS_QUEUED_MAX: usize = 4_000;
/// How long a stopping consumer waits for the answer to its last dequeue. A busy queue answers within it. An
/// idle long poll is dropped, which tells the server to lease nothing.
const LAST_POLL_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs until it is stopped, or until the server refuses a dequeue with an error that is not transient.
pub(super) async fn run<H: Handler>(
    client: Client,
    config: ConsumerConfig,
    handler: Arc<H>,
    stop: watch::Receiver<bool>,
) -> Result<ConsumerReport, Error> {
    let deliveries = Arc::new(OpenDeliveries::default());
    let counters = Arc::new(ReportCounters::default());
    let (settlements, queued) = mpsc::channel(SETTLEMENTS_QUEUED_MAX);
    let settler = tokio::spawn(settle::settle(client.clone(), queued, deliveries.clone(), counters.clone()));
    let extender = tokio::spawn(deliveries.clone().extend_leases(client.clone(), config.lease));

    let slots = Arc::new(Semaphore::new(config.concurrency));
    let mut handlers = Handlers::new(handler, slots.clone(), settlements, counters.clone(), stop.clone());
    let end = poll(&client, &config, &slots, &deliveries, &mut handlers, stop).await;

    // Stop in order: dequeues (above), handlers, settlements. Leases come last, because they must be
    // extended until everything is settled.
    handlers.finish(config.stop_grace).await;
    // The settler ends now that no sender is left. It does not panic.
    let _ = settler.await;
    extender.abort();
    end.map(|()| counters.report())
}

async fn poll<H: Handler>(
    client: &Client,
    config: &ConsumerConfig,
    slots: &Arc<Semaphore>,
    deliveries: &OpenDeliveries,
    handlers: &mut Handlers<H>,
    stop: watch::Receiver<bool>,
) -> Result<(), Error> {
    while !stopped(&stop) {
        let free = tokio::select! {
            biased;
            () = stopping(stop.clone()) => break,
            free = acquire_slots(slots) => free,
        };
        let since = Instant::now();
        let mut dequeue = std::pin::pin!(client.dequeue(call(config, free.len())));
        let answer = tokio::select! {
            biased;
            answer = &mut dequeue => answer,
            () = stopping(stop.clone()) => match tokio::time::timeout(LAST_POLL_TIMEOUT, dequeue).await {
                Ok(answer) => answer,
                Err(_) => break,
            },
        };
        match answer {
            Ok(items) => {
                // The lease began after the call did. The answer arrives within a sixth of the lease.
                let since = Instant::now().checked_sub(config.lease / 6).map_or(since, |at| at.max(since));
                start_handlers(items, free, since, deliveries, handlers);
            }
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "dequeue failed; retrying");
                drop(free);
                // The client has paused between its own attempts. This pause is for a policy without retries.
                tokio::select! {
                    () = stopping(stop.clone()) => {}
                    () = tokio::time::sleep(client.config.retry.max) => {}
                }
            }
            Err(error) => {
                tracing::error!(%error, "dequeue refused; the consumer ends");
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Waits for one free slot, then acquires all that are free, up to the items of one dequeue.
async fn acquire_slots(slots: &Arc<Semaphore>) -> Vec<OwnedSemaphorePermit> {
    let mut free = Vec::new();
    free.extend(slots.clone().acquire_owned().await.ok());
    while free.len() < POLL_ITEMS_MAX {
        match slots.clone().try_acquire_owned() {
            Ok(slot) => free.push(slot),
            Err(_) => break,
        }
    }
    free
}

/// Asks each topic for its share of the free slots, and for one item at least.
fn call(config: &ConsumerConfig, free: usize) -> DequeueCall {
    // At most 1,000, so it fits.
    let share =
        free.div_ceil(config.topics.len().max(1)).min(POLL_ITEMS_MAX / config.topics.len().max(1)).max(1);
    let max_items = u32::try_from(share).unwrap_or(1);
    DequeueCall {
        demands: config.topics.iter().map(|topic| Demand { topic: topic.clone(), max_items }).collect(),
        wait: config.wait,
        lease: Some(config.lease),
        consumer: config.name.clone(),
        max_bytes: 0,
    }
}

fn start_handlers<H: Handler>(
    items: Vec<Dequeued>,
    free: Vec<OwnedSemaphorePermit>,
    since: Instant,
    deliveries: &OpenDeliveries,
    handlers: &mut Handlers<H>,
) {
    let mut free = free.into_iter();
    for item in items {
        let lost = if item.receipt.is_empty() {
            watch::channel(false).1
        } else {
            deliveries.add(&item.receipt, since)
        };
        handlers.start(item, lost, free.next());
    }
}
