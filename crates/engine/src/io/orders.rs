//! The orders of the event loop to a shard's task.

use std::{collections::VecDeque, future::pending};

use tokio::sync::mpsc::UnboundedReceiver;

use crate::messages::shard::ShardOrder;

/// The orders of a shard's task, oldest first.
pub(crate) struct Orders {
    /// Orders that were not looked at yet.
    inbox: UnboundedReceiver<ShardOrder>,
    /// Orders that came while a batch was in flight, and wait until that has ended.
    held: VecDeque<ShardOrder>,
}

impl Orders {
    /// The orders that come from this inbox.
    pub fn from(inbox: UnboundedReceiver<ShardOrder>) -> Self {
        Self { inbox, held: VecDeque::new() }
    }

    /// The next one. `None`: the event loop is gone.
    pub async fn next(&mut self) -> Option<ShardOrder> {
        match self.held.pop_front() {
            Some(order) => Some(order),
            None => self.inbox.recv().await,
        }
    }

    /// Returns once the task is to end, or the event loop is gone. Other orders are of an earlier term.
    pub async fn stop(&mut self) {
        while let Some(order) = self.next().await {
            if matches!(order, ShardOrder::Stop) {
                return;
            }
        }
    }

    /// Returns once the event loop has dropped the memory of this term. Other orders wait.
    pub async fn dropped(&mut self, term: u64) {
        while let Some(order) = self.inbox.recv().await {
            if matches!(order, ShardOrder::Dropped { term: dropped } if dropped == term) {
                return;
            }
            self.held.push_back(order);
        }
        // The event loop is gone. That is seen once the batch has ended.
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{sync::mpsc::unbounded_channel, time::timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_beside_a_batch_waits_and_is_not_lost() {
        let (sender, inbox) = unbounded_channel();
        let mut orders = Orders::from(inbox);
        for order in [
            ShardOrder::TakeAnew { term: 1 },
            ShardOrder::Dropped { term: 0 },
            ShardOrder::Stop,
            ShardOrder::Dropped { term: 1 },
        ] {
            assert!(sender.send(order).is_ok());
        }
        orders.dropped(1).await;
        assert!(matches!(orders.next().await, Some(ShardOrder::TakeAnew { term: 1 })));
        // Of an earlier term, and then what ends the task.
        orders.stop().await;
        assert!(timeout(Duration::from_secs(1), orders.next()).await.is_err(), "nothing is left");
        drop(sender);
        assert!(orders.next().await.is_none());
        assert!(timeout(Duration::from_secs(1), orders.dropped(1)).await.is_err(), "the batch goes on");
    }
}
