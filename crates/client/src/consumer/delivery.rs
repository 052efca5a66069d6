//! What a handler gets and what it answers.

use std::{future::Future, time::Duration};

use tokio::sync::watch;

use crate::Dequeued;

/// An item in a handler's hands.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The item.
    pub item: Dequeued,
    pub(super) lost: watch::Receiver<bool>,
}

impl Delivery {
    /// The lease could not be kept: another consumer may have the item already, and the outcome won't count.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Waits until the lease is lost; for a long handler that wants to stop then.
    pub async fn lost(&mut self) {
        if self.lost.wait_for(|lost| *lost).await.is_err() {
            // Nobody watches any more, so nobody will say it.
            std::future::pending::<()>().await;
        }
    }
}

/// What a handler makes of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done; it never comes back.
    Ack,
    /// It failed; it comes back after the delay, until its attempts are used up.
    Retry {
        /// How long it stays away.
        delay: Duration,
        /// Why, for people.
        reason: String,
    },
    /// It will never succeed: to the dead letters.
    Reject {
        /// Why, for people.
        reason: String,
    },
    /// Not handled; ready again at once, and no failure.
    Release,
}

impl Outcome {
    /// It failed; it comes back after `delay`.
    pub fn retry(delay: Duration, reason: impl Into<String>) -> Self {
        Self::Retry { delay, reason: reason.into() }
    }

    /// It will never succeed.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self::Reject { reason: reason.into() }
    }
}

/// Handles items; every async closure from a [`Delivery`] to an [`Outcome`] does.
///
/// An item may be handed out more than once (its lease ran out, an ack was lost), so handling it twice
/// must do no harm. A handler that panics counts as [`Outcome::Retry`] without a delay.
pub trait Handler: Send + Sync + 'static {
    /// Handles one item.
    fn handle(&self, delivery: Delivery) -> impl Future<Output = Outcome> + Send;
}

impl<F, O> Handler for F
where
    F: Fn(Delivery) -> O + Send + Sync + 'static,
    O: Future<Output = Outcome> + Send,
{
    fn handle(&self, delivery: Delivery) -> impl Future<Output = Outcome> + Send {
        self(delivery)
    }
}
