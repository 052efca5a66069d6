//! Asks for items while there are free places; and the order in which a consumer stops.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::Instant,
};

use super::{
    ConsumerConfig, ConsumerReport, Handler,
    in_hand::InHand,
    settle::{self, Counts},
    work::{Work, stopped, stopping},
};
use crate::{Client, Demand, DequeueCall, Dequeued, Error};

/// Items of one poll.
const ITEMS: usize = 1_000;
/// Ends that wait for their call.
const ENDS: usize = 4_000;
/// How long an answer that is on its way is waited for at the stop. A busy queue answers within it; an idle
/// long poll is dropped, which tells the server to lease nothing.
const LAST_ANSWER: Duration = Duration::from_millis(500);

/// Runs until it is stopped or refused for good.
pub(super) async fn run<H: Handler>(
    client: Client,
    config: ConsumerConfig,
    handler: Arc<H>,
    stop: watch::Receiver<bool>,
) -> Result<ConsumerReport, Error> {
    let in_hand = Arc::new(InHand::default());
    let counts = Arc::new(Counts::default());
    let (ends, ended) = mpsc::channel(ENDS);
    let settler = tokio::spawn(settle::settle(client.clone(), ended, in_hand.clone(), counts.clone()));
    let keeper = tokio::spawn(in_hand.clone().keep(client.clone(), config.lease));

    let places = Arc::new(Semaphore::new(config.concurrency));
    let mut work = Work::new(handler, places.clone(), ends, counts.clone(), stop.clone());
    let end = poll(&client, &config, &places, &in_hand, &mut work, stop).await;

    // The order of the stop: no more polls (above), handlers, settlements, and the leases last, because they
    // must hold until all is told.
    work.finish(config.stop_grace).await;
    // The settler ends by itself now that no sender is left; it does not panic.
    let _ = settler.await;
    keeper.abort();
    end.map(|()| counts.report())
}

async fn poll<H: Handler>(
    client: &Client,
    config: &ConsumerConfig,
    places: &Arc<Semaphore>,
    in_hand: &InHand,
    work: &mut Work<H>,
    stop: watch::Receiver<bool>,
) -> Result<(), Error> {
    while !stopped(&stop) {
        let free = tokio::select! {
            biased;
            () = stopping(stop.clone()) => break,
            free = take_free(places) => free,
        };
        let since = Instant::now();
        let mut asked = std::pin::pin!(client.dequeue(call(config, free.len())));
        let answer = tokio::select! {
            biased;
            answer = &mut asked => answer,
            () = stopping(stop.clone()) => match tokio::time::timeout(LAST_ANSWER, asked).await {
                Ok(answer) => answer,
                Err(_) => break,
            },
        };
        match answer {
            Ok(items) => {
                // The lease began after the poll did, and an answer does not travel for a sixth of it.
                let since = Instant::now().checked_sub(config.lease / 6).map_or(since, |at| at.max(since));
                hand_out(items, free, since, in_hand, work);
            }
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "polling failed; it goes on");
                drop(free);
                // The client has paused between its attempts already; this one keeps an attempt-less
                // policy from spinning.
                tokio::select! {
                    () = stopping(stop.clone()) => {}
                    () = tokio::time::sleep(client.config.retry.max) => {}
                }
            }
            Err(error) => {
                tracing::error!(%error, "polling was refused");
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Waits for one free place and takes the others that are free, up to a poll's worth.
async fn take_free(places: &Arc<Semaphore>) -> Vec<OwnedSemaphorePermit> {
    let mut free = Vec::new();
    free.extend(places.clone().acquire_owned().await.ok());
    while free.len() < ITEMS {
        match places.clone().try_acquire_owned() {
            Ok(place) => free.push(place),
            Err(_) => break,
        }
    }
    free
}

/// Asks each topic for its share, and for one item at least.
fn call(config: &ConsumerConfig, free: usize) -> DequeueCall {
    // At most 1,000, so it fits.
    let share = free.div_ceil(config.topics.len().max(1)).min(ITEMS / config.topics.len().max(1)).max(1);
    let max_items = u32::try_from(share).unwrap_or(1);
    DequeueCall {
        demands: config.topics.iter().map(|topic| Demand { topic: topic.clone(), max_items }).collect(),
        wait: config.wait,
        lease: Some(config.lease),
        consumer: config.name.clone(),
        max_bytes: 0,
    }
}

fn hand_out<H: Handler>(
    items: Vec<Dequeued>,
    free: Vec<OwnedSemaphorePermit>,
    since: Instant,
    in_hand: &InHand,
    work: &mut Work<H>,
) {
    let mut free = free.into_iter();
    for item in items {
        let lost = if item.receipt.is_empty() {
            watch::channel(false).1
        } else {
            in_hand.hold(&item.receipt, since)
        };
        work.begin(item, lost, free.next());
    }
}
