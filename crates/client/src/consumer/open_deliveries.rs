//! The deliveries that are not settled yet, and the extension of their leases.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_types::Reason;
use tokio::{sync::watch, time::Instant};

use crate::client::Client;

/// Members of one extension call.
const CALL_MEMBERS_MAX: usize = 1_000;

/// The deliveries that are not settled yet, by receipt.
#[derive(Debug, Default)]
pub(super) struct OpenDeliveries(Mutex<HashMap<String, OpenDelivery>>);

#[derive(Debug)]
struct OpenDelivery {
    /// The lease runs since this time or later.
    since: Instant,
    /// Tells the handler that the lease is lost.
    lost: watch::Sender<bool>,
}

impl OpenDeliveries {
    /// Adds a delivery whose lease began no earlier than `since`. Returns whether the lease is lost.
    pub(super) fn add(&self, receipt: &str, since: Instant) -> watch::Receiver<bool> {
        let (lost, watched) = watch::channel(false);
        self.lock().insert(receipt.to_owned(), OpenDelivery { since, lost });
        watched
    }

    /// Removes a delivery that was settled, or whose settlement failed.
    pub(super) fn remove(&self, receipt: &str) {
        self.lock().remove(receipt);
    }

    /// Extends the leases of all open deliveries, forever.
    pub(super) async fn extend_leases(self: Arc<Self>, client: Client, lease: Duration) {
        let mut tick = tokio::time::interval(lease / 12);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let mut due = self.due(lease / 3);
            while !due.is_empty() {
                let later = due.split_off(due.len().min(CALL_MEMBERS_MAX));
                self.extend(&client, due, lease).await;
                due = later;
            }
        }
    }

    /// Extends these leases. After a transient error they are due again at the next tick.
    async fn extend(&self, client: &Client, receipts: Vec<String>, lease: Duration) {
        let (since, count) = (Instant::now(), receipts.len());
        // The limit is two ticks: a hanging call must not delay other extensions until their leases end.
        // With several servers, one that hangs leaves time for another one.
        let several = client.endpoints.are_several().then(|| client.with_attempt_timeout(lease / 12));
        let extension = several.as_ref().unwrap_or(client).extend_lease(receipts.clone(), Some(lease));
        let answer = tokio::time::timeout(lease / 6, extension).await;
        match answer {
            Ok(Ok(results)) => {
                for (receipt, result) in receipts.iter().zip(results) {
                    match result {
                        Ok(_) => self.mark_extended(receipt, since),
                        Err(error) if error.reason() == Some(Reason::LeaseLost) => self.mark_lost(receipt),
                        Err(error) => tracing::debug!(%error, "cannot extend a lease"),
                    }
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, count, "cannot extend {count} leases; retrying"),
            Err(_) => tracing::warn!(count, "cannot extend {count} leases: no answer in time; retrying"),
        }
    }

    fn due(&self, age: Duration) -> Vec<String> {
        let now = Instant::now();
        let open = self.lock();
        let old = open.iter().filter(|(_, one)| now.saturating_duration_since(one.since) >= age);
        old.filter(|(_, one)| !*one.lost.borrow()).map(|(receipt, _)| receipt.clone()).collect()
    }

    fn mark_extended(&self, receipt: &str, since: Instant) {
        if let Some(delivery) = self.lock().get_mut(receipt) {
            delivery.since = since;
        }
    }

    fn mark_lost(&self, receipt: &str) {
        if let Some(delivery) = self.lock().get(receipt) {
            delivery.lost.send_replace(true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OpenDelivery>> {
        // A panic while the lock is held leaves a valid map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
