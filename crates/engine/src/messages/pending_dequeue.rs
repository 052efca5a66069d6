//! The caller's end of a dequeue call.

use forebay_types::{Namespace, Refusal};
use tokio::sync::{mpsc::UnboundedSender, oneshot::Receiver};

use super::{delivery_guard::DeliveryGuard, event::Event, reply::received};
use crate::api::DeliveredItem;

/// A dequeue call without an answer. If the caller drops it, what is leased for the call is returned.
pub struct PendingDequeue {
    /// Receives the answer.
    answer: Receiver<Result<DeliveryGuard, Refusal>>,
    /// Dropped with the call.
    gone: DisconnectGuard,
}

/// Tells the engine when the caller of a dequeue disconnects.
struct DisconnectGuard {
    namespace: Namespace,
    /// Names the poll.
    id: u64,
    /// The way to the engine.
    events: UnboundedSender<Event>,
    /// The call has no answer yet.
    armed: bool,
}

impl PendingDequeue {
    /// The call of this number has been sent to the engine.
    pub(crate) fn new(
        namespace: Namespace,
        id: u64,
        answer: Receiver<Result<DeliveryGuard, Refusal>>,
        events: UnboundedSender<Event>,
    ) -> Self {
        Self { answer, gone: DisconnectGuard { namespace, id, events, armed: true } }
    }

    /// Waits for the items. Those that the caller does not `accept` are returned.
    pub async fn items(
        &mut self,
        accept: impl FnOnce(&[DeliveredItem]) -> Result<(), Refusal>,
    ) -> Result<Vec<DeliveredItem>, Refusal> {
        let answer = self.answer().await?;
        accept(answer.items())?;
        Ok(answer.take())
    }

    /// Waits for the answer, which is to be taken.
    pub(crate) async fn answer(&mut self) -> Result<DeliveryGuard, Refusal> {
        let answer = received(&mut self.answer).await;
        self.gone.armed = false;
        answer
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        if self.armed {
            let (namespace, id) = (self.namespace.clone(), self.id);
            let _ = self.events.send(Event::PollGone { namespace, id });
        }
    }
}
