//! The deliveries in hand, and how their leases are kept.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use crate::{Client, Reason};

/// Members of one extension call.
const MEMBERS: usize = 1_000;

/// The deliveries that are not settled yet, by receipt.
#[derive(Debug, Default)]
pub(super) struct InHand(Mutex<HashMap<String, Held>>);

#[derive(Debug)]
struct Held {
    /// Since when the lease is known to run.
    since: Instant,
    lost: watch::Sender<bool>,
}

impl InHand {
    /// A delivery whose lease began no later than `since`. Says when it is lost.
    pub(super) fn hold(&self, receipt: &str, since: Instant) -> watch::Receiver<bool> {
        let (lost, told) = watch::channel(false);
        self.lock().insert(receipt.to_owned(), Held { since, lost });
        told
    }

    /// The delivery is settled, or given up.
    pub(super) fn let_go(&self, receipt: &str) {
        self.lock().remove(receipt);
    }

    /// Keeps the leases of all that is in hand, for ever.
    pub(super) async fn keep(self: Arc<Self>, client: Client, lease: Duration) {
        let mut tick = tokio::time::interval(lease / 12);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let mut due = self.due(lease / 3);
            while !due.is_empty() {
                let later = due.split_off(due.len().min(MEMBERS));
                self.extend(&client, due, lease).await;
                due = later;
            }
        }
    }

    /// Extends these; what fails for a while is due again at the next tick.
    async fn extend(&self, client: &Client, receipts: Vec<String>, lease: Duration) {
        let since = Instant::now();
        // No longer than until the tick after the next: a hanging call must not keep the others waiting
        // until their leases are over.
        let answer =
            tokio::time::timeout(lease / 6, client.extend_lease(receipts.clone(), Some(lease))).await;
        match answer {
            Ok(Ok(results)) => {
                for (receipt, result) in receipts.iter().zip(results) {
                    match result {
                        Ok(_) => self.extended(receipt, since),
                        Err(error) if error.reason() == Some(Reason::LeaseLost) => self.lose(receipt),
                        Err(error) => tracing::debug!(%error, "a lease was not extended"),
                    }
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, leases = receipts.len(), "leases were not extended"),
            Err(_) => tracing::warn!(leases = receipts.len(), "an extension of leases had no answer in time"),
        }
    }

    fn due(&self, age: Duration) -> Vec<String> {
        let now = Instant::now();
        let held = self.lock();
        let old = held.iter().filter(|(_, held)| now.saturating_duration_since(held.since) >= age);
        old.filter(|(_, held)| !*held.lost.borrow()).map(|(receipt, _)| receipt.clone()).collect()
    }

    fn extended(&self, receipt: &str, since: Instant) {
        if let Some(held) = self.lock().get_mut(receipt) {
            held.since = since;
        }
    }

    fn lose(&self, receipt: &str) {
        if let Some(held) = self.lock().get(receipt) {
            held.lost.send_replace(true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        // No panic leaves the map half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
