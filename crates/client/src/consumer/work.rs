//! Runs the handler over one item.

use std::sync::Arc;

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
};

use super::{
    Delivery, Handler, Outcome,
    settle::{Counts, Ended},
};
use crate::Dequeued;

/// The handlers at work.
pub(super) struct Work<H> {
    handler: Arc<H>,
    places: Arc<Semaphore>,
    ends: mpsc::Sender<Ended>,
    counts: Arc<Counts>,
    /// Begin no more.
    stop: watch::Receiver<bool>,
    /// Handlers at work are cut off.
    cut: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl<H: Handler> Work<H> {
    pub(super) fn new(
        handler: Arc<H>,
        places: Arc<Semaphore>,
        ends: mpsc::Sender<Ended>,
        counts: Arc<Counts>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { handler, places, ends, counts, stop, cut: watch::Sender::new(false), tasks: JoinSet::new() }
    }

    /// Handles an item once it has a place, unless the consumer stops before.
    pub(super) fn begin(
        &mut self,
        item: Dequeued,
        lost: watch::Receiver<bool>,
        place: Option<OwnedSemaphorePermit>,
    ) {
        while self.tasks.try_join_next().is_some() {}
        let receipt = item.receipt.clone();
        let (handler, places) = (self.handler.clone(), self.places.clone());
        let (ends, counts) = (self.ends.clone(), self.counts.clone());
        let (stop, cut) = (self.stop.clone(), self.cut.subscribe());
        self.tasks.spawn(async move {
            let (outcome, place) = match enter(place, places, stop).await {
                None => (Outcome::Release, None),
                Some(place) => (run(handler, Delivery { item, lost }, cut).await, Some(place)),
            };
            if receipt.is_empty() {
                // An at-most-once item is gone from the server already.
                counts.count(&outcome);
            } else {
                // The settler outlives all senders. The place is kept until it takes the end in, so that a
                // server that takes no acks gets no more polls either.
                let _ = ends.send(Ended { receipt, outcome }).await;
            }
            drop(place);
        });
    }

    /// Waits for the handlers, and after `grace` cuts them off.
    pub(super) async fn finish(mut self, grace: std::time::Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all).await.is_err() {
            self.cut.send_replace(true);
            while self.tasks.join_next().await.is_some() {}
        }
    }
}

/// A place, unless the consumer stops first.
async fn enter(
    place: Option<OwnedSemaphorePermit>,
    places: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
) -> Option<OwnedSemaphorePermit> {
    if stopped(&stop) {
        return None;
    }
    match place {
        Some(place) => Some(place),
        None => tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => None,
            place = places.acquire_owned() => place.ok(),
        },
    }
}

/// Whether the consumer stops: it was told to, or its handle is gone.
pub(super) fn stopped(stop: &watch::Receiver<bool>) -> bool {
    *stop.borrow() || stop.has_changed().is_err()
}

/// Runs the handler in a task of its own, so that its panic is an outcome like another.
async fn run<H: Handler>(handler: Arc<H>, delivery: Delivery, mut cut: watch::Receiver<bool>) -> Outcome {
    let mut task = JoinSet::new();
    task.spawn(async move { handler.handle(delivery).await });
    tokio::select! {
        biased;
        end = task.join_next() => match end {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) if error.is_panic() => {
                tracing::error!("a handler panicked");
                Outcome::retry(std::time::Duration::ZERO, "the handler panicked")
            }
            // Nobody else aborts it, and the set holds one task.
            Some(Err(_)) | None => Outcome::Release,
        },
        () = told(&mut cut) => {
            task.shutdown().await;
            Outcome::Release
        }
    }
}

async fn told(cut: &mut watch::Receiver<bool>) {
    if cut.wait_for(|cut| *cut).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Ends when the consumer is to stop.
pub(super) async fn stopping(mut stop: watch::Receiver<bool>) {
    // An error says that the handle is gone, which means the same.
    let _ = stop.wait_for(|stop| *stop).await;
}
