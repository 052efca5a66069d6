//! Runs the handler on items, each in a task of its own.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
};

use super::{
    delivery::{Delivery, Handler, Outcome},
    report::ReportCounters,
    settle::Settlement,
};
use crate::{
    dequeued::ReceivedItem,
    trace_config::TraceConfig,
    traces::{self, HandlerContext},
};

/// The running handlers.
pub(super) struct Handlers<H> {
    /// Runs on every item.
    handler: Arc<H>,
    /// One permit a running handler.
    slots: Arc<Semaphore>,
    /// Passes outcomes on to be acked or nacked.
    settlements: mpsc::Sender<Settlement>,
    /// Counts items that need no settlement.
    counters: Arc<ReportCounters>,
    /// No further handler starts once this is true.
    stop: watch::Receiver<bool>,
    /// Running handlers are aborted once this is true.
    abort: watch::Sender<bool>,
    /// Which spans handlers have.
    traces: TraceConfig,
    /// The running handlers, to be waited for at the stop.
    tasks: JoinSet<()>,
}

impl<H: Handler> Handlers<H> {
    /// None running yet.
    pub(super) fn new(
        handler: Arc<H>,
        slots: Arc<Semaphore>,
        settlements: mpsc::Sender<Settlement>,
        counters: Arc<ReportCounters>,
        stop: watch::Receiver<bool>,
        traces: TraceConfig,
    ) -> Self {
        let (abort, tasks) = (watch::Sender::new(false), JoinSet::new());
        Self { handler, slots, settlements, counters, stop, abort, traces, tasks }
    }

    /// Handles an item once it has a slot. If the consumer stops before, the item is released.
    pub(super) fn start(
        &mut self,
        item: ReceivedItem,
        lost: watch::Receiver<bool>,
        slot: Option<OwnedSemaphorePermit>,
    ) {
        self.reap();
        let receipt = item.receipt.clone();
        let (handler, slots) = (self.handler.clone(), self.slots.clone());
        let (settlements, counters) = (self.settlements.clone(), self.counters.clone());
        let (stop, abort, traces) = (self.stop.clone(), self.abort.subscribe(), self.traces);
        self.tasks.spawn(async move {
            let ((outcome, processed), slot) = match acquire_slot(slot, slots, stop).await {
                None => ((Outcome::Release, HandlerContext::none()), None),
                Some(slot) => (run(handler, Delivery { item, lost }, abort, traces).await, Some(slot)),
            };
            if receipt.is_empty() {
                // An at-most-once item is gone from the server already.
                counters.count_settled(&outcome);
            } else {
                // The receiver outlives all senders. The slot is held until the settlement is queued, so that
                // a server that does not accept acks gets no more dequeues.
                let _ = settlements.send(Settlement { receipt, outcome, processed }).await;
            }
            drop(slot);
        });
    }

    /// Waits until one of them ends. If there are none, that is never.
    pub(super) async fn ended(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Forgets those that have ended. Returns whether there were any.
    pub(super) fn reap(&mut self) -> bool {
        let mut ended = false;
        while self.tasks.try_join_next().is_some() {
            ended = true;
        }
        ended
    }

    /// Whether all have ended.
    pub(super) fn are_none(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits for the handlers, and aborts them after `grace`.
    pub(super) async fn finish(mut self, grace: Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all).await.is_err() {
            self.abort.send_replace(true);
            while self.tasks.join_next().await.is_some() {}
        }
    }
}

/// Waits for a slot; `None` if the consumer stops first.
async fn acquire_slot(
    slot: Option<OwnedSemaphorePermit>,
    slots: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
) -> Option<OwnedSemaphorePermit> {
    if stopped(&stop) {
        return None;
    }
    match slot {
        Some(slot) => Some(slot),
        None => tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => None,
            slot = slots.acquire_owned() => slot.ok(),
        },
    }
}

/// Whether the consumer stops: `stop` was called, or its handle was dropped.
pub(super) fn stopped(stop: &watch::Receiver<bool>) -> bool {
    *stop.borrow() || stop.has_changed().is_err()
}

/// Runs the handler in a task of its own, so that a panic becomes an outcome.
async fn run<H: Handler>(
    handler: Arc<H>,
    delivery: Delivery,
    mut abort: watch::Receiver<bool>,
    traces: TraceConfig,
) -> (Outcome, HandlerContext) {
    let span = traces::process(&delivery.item, traces);
    let mut task = JoinSet::new();
    task.spawn(span.around(async move { handler.handle(delivery).await }));
    let outcome = tokio::select! {
        biased;
        end = task.join_next() => match end {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) if error.is_panic() => {
                tracing::error!("handler panicked; its item is retried");
                Outcome::retry(Duration::ZERO, "the handler panicked")
            }
            // The task is aborted only below, and the set holds only this one.
            Some(Err(_)) | None => Outcome::Release,
        },
        () = aborted(&mut abort) => {
            task.shutdown().await;
            Outcome::Release
        }
    };
    let processed = span.end(outcome.failed());
    (outcome, processed)
}

async fn aborted(abort: &mut watch::Receiver<bool>) {
    if abort.wait_for(|abort| *abort).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits until the consumer is to stop.
pub(super) async fn stopping(mut stop: watch::Receiver<bool>) {
    // A dropped handle means the same.
    let _ = stop.wait_for(|stop| *stop).await;
}
