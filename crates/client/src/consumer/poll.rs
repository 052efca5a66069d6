//! Dequeues items from one server, or from all, while handler slots are free, and stops a consumer in order.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    config::ConsumerConfig,
    delivery::Handler,
    handlers::{Handlers, stopped, stopping},
    idle::Idle,
    lanes::{Lanes, Share},
    open_deliveries::OpenDeliveries,
    place::Place,
    report::{ConsumerReport, ReportCounters},
    settle,
};
use crate::{
    calls::dequeue::{Demand, DequeueCall, ReceivedItems},
    client::Client,
    dequeued::ReceivedItem,
    endpoints::Endpoint,
    error::Error,
    retry::pause,
};

/// Items of one dequeue.
const POLL_ITEMS_MAX: usize = 1_000;
/// Settlements that wait to be sent.
const SETTLEMENTS_QUEUED_MAX: usize = 4_000;
/// How long a stopping consumer waits for the answers to its last dequeues. A busy queue answers within it.
/// An idle long poll is dropped, which tells the server to lease nothing.
const LAST_POLL_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a poll waits until it is known whether there are other nodes.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// How long a server of several is left alone at most: it may take over shards.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Failures of a server in a row that are worth a warning: the first ones may be over at once.
const WARNED_FAILURES: u32 = 4;

/// Runs until it is stopped, until there is nothing to do for as long as is configured, or until the server
/// refuses a dequeue with an error that is not transient.
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
    let (permits, counts, traces) = (slots.clone(), counters.clone(), client.config.traces);
    let mut handlers = Handlers::new(handler, permits, settlements, counts, stop.clone(), traces);
    let lanes = Lanes::new(config.concurrency, config.topics.len()).exact(config.max_items.is_some());
    let polls = JoinSet::new();
    let mut poller = Poller {
        client: &client,
        config: &config,
        slots,
        deliveries: &deliveries,
        handlers: &mut handlers,
        left: config.max_items.unwrap_or(usize::MAX),
        idle: Idle::new(config.idle_exit),
        place: Place::default(),
        lanes,
        polls,
    };
    let learning = client.learner.clone().map(|learner| tokio::spawn(learner.keep_learning()));
    let end = poller.poll(stop).await;
    poller.finish().await;

    // Stop in order: dequeues (above), handlers, settlements. Leases come last, because they must be
    // extended until everything is settled.
    handlers.finish(config.stop_grace).await;
    // The settler ends now that no sender is left. It does not panic.
    let _ = settler.await;
    extender.abort();
    learning.iter().for_each(|task| task.abort());
    end.map(|()| counters.report())
}

/// Asks the servers for items.
struct Poller<'a, H> {
    /// Makes the calls.
    client: &'a Client,
    /// Settings: topics, and how much to ask for.
    config: &'a ConsumerConfig,
    /// One permit a handler that does not run.
    slots: Arc<Semaphore>,
    /// Deliveries are added.
    deliveries: &'a OpenDeliveries,
    /// Get the items.
    handlers: &'a mut Handlers<H>,
    /// Items that may still be asked for. Those that polls in flight ask for are off already.
    left: usize,
    /// For how long there was nothing to do.
    idle: Idle,
    /// The server to ask, if one is enough.
    place: Place,
    /// Servers to ask.
    lanes: Lanes,
    /// The dequeues in flight.
    polls: JoinSet<Answer>,
}

/// The answer to a dequeue.
struct Answer {
    /// Server that was asked.
    endpoint: Arc<Endpoint>,
    /// When.
    began: Instant,
    /// For the handlers of the items.
    slots: Vec<OwnedSemaphorePermit>,
    /// The items.
    items: Result<ReceivedItems, Error>,
}

impl<H: Handler> Poller<'_, H> {
    /// Runs until the consumer is to stop, until there is nothing to do, or until a dequeue is refused.
    async fn poll(&mut self, stop: watch::Receiver<bool>) -> Result<(), Error> {
        let mut endpoints = self.client.endpoints.watch();
        while !stopped(&stop) {
            let in_use = endpoints.borrow_and_update().clone();
            let asked = self.place.servers(&self.client.endpoints, &in_use);
            self.lanes.set(&ids(&asked), &ids(&in_use.endpoints));
            let rests = self.rests();
            if rests && self.polls.is_empty() {
                break;
            }
            let asks = self.left > 0 && !rests;
            let (now, most) = (Instant::now(), self.left.min(POLL_ITEMS_MAX * asked.len()));
            let wake = if self.left > 0 { self.lanes.next_wake(now) } else { self.idle.ends_at() };
            tokio::select! {
                biased;
                () = stopping(stop.clone()) => break,
                Some(Ok(answer)) = self.polls.join_next() => self.take(answer)?,
                // The sender lives as long as the client.
                Ok(()) = endpoints.changed() => {}
                () = self.handlers.ended() => self.idle.stir(),
                () = tokio::time::sleep_until(wake.unwrap_or(now)), if wake.is_some_and(|at| at > now) => {}
                free = acquire_slots(&self.slots, most), if asks && self.lanes.is_due(now) => {
                    self.share_out(free, &asked);
                }
            }
        }
        Ok(())
    }

    /// Whether nothing came and nothing ran for long enough, and no server has anything. Then none is asked
    /// any more, and the consumer ends if the polls in flight bring nothing either.
    fn rests(&mut self) -> bool {
        if self.handlers.reap() {
            self.idle.stir();
        }
        // A node that is not known yet may have items.
        let knows_all = self.client.learner.as_ref().is_none_or(|learner| learner.has_asked());
        let has_none = self.left == 0 || (knows_all && self.lanes.are_empty());
        self.idle.is_long() && self.handlers.are_none() && has_none
    }

    /// Asks the servers that should be asked.
    fn share_out(&mut self, mut free: Vec<OwnedSemaphorePermit>, asked: &[Arc<Endpoint>]) {
        // Until the other nodes are known, no poll should keep their slots for long.
        let soon = self.client.learner.as_ref().is_some_and(|learner| !learner.has_asked());
        let wait = if soon { self.config.wait.min(FIRST_WAIT) } else { self.config.wait };
        let wait = self.idle.shorten(wait);
        for share in self.lanes.share_out(free.len(), Instant::now(), wait) {
            let found = asked.iter().find(|endpoint| endpoint.id() == share.id);
            let Some(endpoint) = found.cloned() else { continue };
            let slots = free.split_off(free.len().saturating_sub(share.slots));
            self.left = self.left.saturating_sub(slots.len());
            let call = call(self.config, &share, asked.len() == 1 && self.config.max_items.is_none());
            let (client, began) = (self.client.clone(), Instant::now());
            self.polls.spawn(async move {
                let items = client.dequeue_from(endpoint.clone(), call).await;
                Answer { endpoint, began, slots, items }
            });
        }
    }

    /// Takes the answer of one server. Fails if that is a refusal.
    fn take(&mut self, answer: Answer) -> Result<(), Error> {
        let Answer { endpoint, began, slots, items } = answer;
        self.left = self.left.saturating_add(slots.len());
        match items {
            Ok(ReceivedItems { items, source }) => {
                if !items.is_empty() {
                    self.idle.stir();
                }
                self.left = self.left.saturating_sub(items.len());
                self.lanes.answered(endpoint.id(), items.len());
                let learner = self.client.learner.as_ref();
                let source = learner.zip(source).and_then(|(learner, node)| learner.endpoint_of(&node));
                self.place.answered(endpoint.id(), items.len(), source);
                // The lease began after the call did. The answer arrives within a sixth of the lease.
                let now = Instant::now();
                let since = now.checked_sub(self.config.lease / 6).map_or(began, |at| at.max(began));
                start_handlers(items, slots, since, self.deliveries, self.handlers);
                Ok(())
            }
            Err(error) if error.is_transient() => {
                let (mut policy, rng) = (self.client.config.retry, &self.client.rng);
                let several = self.client.endpoints.are_several();
                if several {
                    policy.max = policy.max.min(PAUSE_MAX);
                }
                let failures = self.lanes.failed(endpoint.id(), Instant::now(), |nth| {
                    pause(policy, nth, error.retry_after(), rng)
                });
                if error.another_may_serve() {
                    self.place.failed(endpoint.id());
                }
                // A node among several may well own no shard.
                let usual = several && error.another_may_serve() && !error.is_servers_fault();
                if !usual && failures >= WARNED_FAILURES && failures.is_power_of_two() {
                    let at = endpoint.address();
                    tracing::warn!(%error, failures, "dequeue from {at} failed {failures} times; retrying");
                }
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, "dequeue refused; the consumer ends");
                Err(error)
            }
        }
    }

    /// Takes the last answers. What takes longer is dropped.
    async fn finish(&mut self) {
        let last = async {
            while let Some(answer) = self.polls.join_next().await {
                // The consumer ends anyway.
                let _ = answer.map(|answer| self.take(answer));
            }
        };
        if timeout(LAST_POLL_TIMEOUT, last).await.is_err() {
            self.polls.abort_all();
            while let Some(answer) = self.polls.join_next().await {
                let _ = answer.map(|answer| self.take(answer));
            }
        }
    }
}

fn ids(endpoints: &[Arc<Endpoint>]) -> Vec<u32> {
    endpoints.iter().map(|endpoint| endpoint.id()).collect()
}

/// Waits for one free slot, then acquires all that are free, up to `max`.
async fn acquire_slots(slots: &Arc<Semaphore>, max: usize) -> Vec<OwnedSemaphorePermit> {
    let mut free = Vec::new();
    free.extend(slots.clone().acquire_owned().await.ok());
    while free.len() < max {
        match slots.clone().try_acquire_owned() {
            Ok(slot) => free.push(slot),
            Err(_) => break,
        }
    }
    free
}

/// Asks each topic of a share for its part of the slots, and for one item at least. `full`: all slots are
/// used, even if that is for more items than there are slots.
fn call(config: &ConsumerConfig, share: &Share, full: bool) -> DequeueCall {
    let (topics, slots) = (share.topics.count.max(1), share.slots.min(POLL_ITEMS_MAX));
    // Items beyond the slots add up over several servers.
    let part = if full { slots.div_ceil(topics) } else { slots / topics };
    let part = part.min(POLL_ITEMS_MAX / topics).max(1);
    // At most 1,000, so it fits.
    let max_items = u32::try_from(part).unwrap_or(1);
    let skip = share.topics.skip % config.topics.len().max(1);
    let asked = config.topics.iter().cycle().skip(skip).take(share.topics.count);
    DequeueCall {
        demands: asked.map(|topic| Demand { topic: topic.clone(), max_items }).collect(),
        wait: share.wait,
        lease: Some(config.lease),
        consumer: config.name.clone(),
        max_bytes: 0,
    }
}

fn start_handlers<H: Handler>(
    items: Vec<ReceivedItem>,
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
