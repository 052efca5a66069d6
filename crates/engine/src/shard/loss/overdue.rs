//! A batch that has had no answer for long. Its callers are told that nobody knows its outcome, and what
//! waits behind it leaves the shard: callers shall not wait for a server that stands still. The batch itself
//! goes on, and what the engine wants itself waits.

use super::abandoned::LostWork;
use crate::shard::work::{ChangeRequest, ReplySlot, ShardLease};

/// A caller that waits for the batch in flight.
pub(crate) enum Caller {
    /// An enqueue call, for these of its items.
    Enqueue(u64, Vec<usize>),
    /// An ack, a nack, or an extension if `extends`.
    Settle {
        /// The member that the answer is for.
        slot: ReplySlot,
        /// It is an extension.
        extends: bool,
    },
    /// A poll, for leases.
    Poll(u64),
    /// An order to an operation.
    Order(u64),
    /// A change of an item.
    Change(ChangeRequest),
}

/// The work that waited behind a batch in flight.
pub(crate) struct WaitingWork {
    /// Reserved items on their way to a lease.
    pub leases: Vec<ShardLease>,
    /// The rest. It has not begun.
    pub work: Vec<LostWork>,
}
