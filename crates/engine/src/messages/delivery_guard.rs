//! Hands delivered items to their caller, or returns them. Wherever the caller disconnects on the way from
//! the event loop to it, nothing is lost.

use forebay_types::Receipt;

use crate::{
    api::{DeliveredItem, ReadyState},
    index::ShardIndex,
    shard::work::ReservedItem,
};

/// How a delivery that nobody received is returned.
pub(crate) enum ReturnAction {
    /// Release its lease.
    Release(Receipt),
    /// Insert the item again: it was to be delivered at most once, so it has left the shard.
    Restore {
        /// The shard that it was taken from.
        shard: ShardIndex,
        /// That shard's term. An owner of a later term does not know the item any more.
        term: u64,
        /// The item.
        item: Box<ReservedItem>,
    },
    /// Nothing can be done: it was to be delivered at most once, and has left another node's shard.
    Lost,
}

/// Takes back what nobody received.
type UndeliveredCallback = Box<dyn FnOnce(Vec<ReturnAction>) + Send>;

/// Delivered items on their way to the caller. Dropped on the way, it returns them.
pub(crate) struct DeliveryGuard {
    /// The items as the caller is given them.
    items: Vec<DeliveredItem>,
    /// How each of them is returned.
    returns: Vec<ReturnAction>,
    /// The ready items that the topic has left, if another node asked. `None`: that is not known yet.
    left: Option<ReadyState>,
    /// Where returns go; `None` where there is nothing to return.
    on_undelivered: Option<UndeliveredCallback>,
}

impl DeliveryGuard {
    /// `on_undelivered` is called with `returns` if nobody takes the items.
    pub fn new(
        items: Vec<DeliveredItem>,
        returns: Vec<ReturnAction>,
        left: Option<ReadyState>,
        on_undelivered: impl FnOnce(Vec<ReturnAction>) + Send + 'static,
    ) -> Self {
        Self { items, returns, left, on_undelivered: Some(Box::new(on_undelivered)) }
    }

    /// An answer without items.
    pub fn empty(left: Option<ReadyState>) -> Self {
        Self { items: Vec::new(), returns: Vec::new(), left, on_undelivered: None }
    }

    /// The ready items that the topic has left, if another node asked.
    pub fn left(&self) -> Option<ReadyState> {
        self.left
    }

    /// The items.
    pub fn items(&self) -> &[DeliveredItem] {
        &self.items
    }

    /// The caller has the items.
    pub fn take(mut self) -> Vec<DeliveredItem> {
        self.returns.clear();
        std::mem::take(&mut self.items)
    }
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        if !self.returns.is_empty()
            && let Some(on_undelivered) = self.on_undelivered.take()
        {
            on_undelivered(std::mem::take(&mut self.returns));
        }
    }
}
