//! Refusals that several calls give.

use forebay_types::{Reason, Refusal};

use crate::api::RETRY_AFTER;

/// The node takes no more work.
pub(crate) fn draining() -> Refusal {
    Refusal::new(Reason::NodeDraining, "the node is stopping: use another node").retry_after(RETRY_AFTER)
}

/// No shard can take an item.
pub(crate) fn no_shard() -> Refusal {
    Refusal::new(Reason::ShardUnavailable, "no shard of this node takes new items at the moment")
        .retry_after(RETRY_AFTER)
}
