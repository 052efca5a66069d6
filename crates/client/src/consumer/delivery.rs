//! Delivery that a handler receives, and result that it returns.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use tokio::sync::watch;

use crate::dequeued::ReceivedItem;

/// An item for a handler.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The item.
    pub item: ReceivedItem,
    /// Becomes true when the lease is lost.
    pub(super) lost: watch::Receiver<bool>,
}

impl Delivery {
    /// Whether the lease is lost: another consumer may have the item, and this outcome has no effect.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Waits until the lease is lost, so that a long handler can stop then.
    pub async fn lost(&mut self) {
        if self.lost.wait_for(|lost| *lost).await.is_err() {
            // The delivery is settled; its lease is no longer watched.
            std::future::pending::<()>().await;
        }
    }
}

/// The result of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done. The item is never delivered again.
    Ack,
    /// Failed. The item is delivered again after the delay, until its attempts are used up.
    Retry {
        /// How long the item is not delivered. Zero: for the retry delay that is set for its topic or its
        /// namespace, not at all where none is set.
        delay: Duration,
        /// Why, for people.
        reason: String,
        /// Replaces the item's metadata: what the next delivery is to know.
        metadata: Option<Bytes>,
    },
    /// Failed for good. The item becomes a dead letter.
    Reject {
        /// Why, for people.
        reason: String,
    },
    /// Not handled. The item is ready again at once, without a failure.
    Release,
}

impl Outcome {
    /// Failed; the item is delivered again after `delay`.
    pub fn retry(delay: Duration, reason: impl Into<String>) -> Self {
        Self::Retry { delay, reason: reason.into(), metadata: None }
    }

    /// Failed for good.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self::Reject { reason: reason.into() }
    }

    /// The word for how its handler has failed: its item is to be handled again, or is a dead letter. Why is
    /// text of the handler's own, which no span holds.
    pub(super) fn failed(&self) -> Option<&'static str> {
        match self {
            Self::Ack | Self::Release => None,
            Self::Retry { .. } => Some("RETRY"),
            Self::Reject { .. } => Some("REJECT"),
        }
    }
}

/// Handles items. Async closures from a [`Delivery`] to an [`Outcome`] implement it.
///
/// An item may be delivered more than once (its lease ended, an ack was lost), so handling it twice must do
/// no harm. A handler that panics counts as [`Outcome::Retry`] without a delay.
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
