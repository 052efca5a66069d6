//! What the engine's one task is told.

use std::{sync::Arc, time::Duration};

use forebay_store::{
    DedupeHit, DueRow, Fence, ItemLocation, Reader, ReadyRow, ShardSnapshot, ShardTopology, StoreError, Sweep,
};
use forebay_types::{Body, Monotonic, Receipt, Refusal, Seq, Timestamp, TopicId};
use tokio::sync::oneshot;

use crate::{
    ActiveTopics, ActiveTopicsCall, DequeueCall, EnqueueCall, Enqueued, ExtendOf, Extended, NackOf, Settled,
    Status,
    handover::{Handover, Undo},
    op::Settle,
};

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

pub(crate) enum Event {
    Enqueue {
        call: EnqueueCall,
        bytes: usize,
        reply: Reply<Vec<Result<Enqueued, Refusal>>>,
    },
    Dequeue {
        id: u64,
        call: DequeueCall,
        reply: Reply<Handover>,
    },
    /// The caller of a dequeue went away.
    PollGone(u64),
    /// Items whose answer nobody took.
    NotHanded(Vec<Undo>),
    Ack {
        acks: Vec<Receipt>,
        reply: Reply<Vec<Settled>>,
    },
    Nack {
        nacks: Vec<NackOf>,
        reply: Reply<Vec<Settled>>,
    },
    Extend {
        extensions: Vec<ExtendOf>,
        reply: Reply<Vec<Extended>>,
    },
    ActiveTopics {
        call: ActiveTopicsCall,
        reply: Reply<ActiveTopics>,
    },
    Status(oneshot::Sender<Status>),
    Stop(oneshot::Sender<()>),
    /// Something about a shard; ignored if the shard has begun another life since.
    Shard {
        shard: usize,
        life: u64,
        what: ShardEvent,
    },
}

pub(crate) enum ShardEvent {
    /// It can't be had for now.
    Waiting {
        state: &'static str,
        why: String,
    },
    /// Which lists of shards it has recorded.
    Seen {
        lists: Vec<ShardTopology>,
    },
    Owned(Box<Taken>),
    /// A batch is committed. `last` is its number, or that of the empty batch that confirmed it.
    Committed {
        last: u64,
    },
    /// One of the batch's rows can't be stored; nothing was committed.
    /// `bad`: the items that it is, where the batch could not be cut.
    Poison {
        why: String,
        bad: Vec<Seq>,
    },
    /// No room for the batch; nothing was committed.
    DiskFull,
    /// A statement failed, and is repeated.
    Trouble(String),
    /// The shard has another owner. `sent`: the COMMIT of the batch under way was sent.
    Lost {
        sent: bool,
    },
    Released,
    /// The heartbeat was renewed by a call that began at `began`.
    Renewed {
        began: Monotonic,
        clock: Option<Timestamp>,
    },
    Ready {
        topic: TopicId,
        read: u64,
        rows: Result<Vec<ReadyRow>, StoreError>,
    },
    Bodies {
        read: u64,
        bodies: Result<Vec<(Seq, Body)>, StoreError>,
    },
    Scan {
        sweep: Sweep,
        read: u64,
        found: Result<(Vec<DueRow>, Option<Timestamp>), StoreError>,
    },
    Dedupe {
        read: u64,
        hits: Result<Vec<DedupeHit>, StoreError>,
    },
    Fate {
        settle: Box<Settle>,
        fate: Result<ItemLocation, StoreError>,
    },
    Generations {
        live: Result<Vec<u64>, StoreError>,
    },
}

/// A shard was taken over.
pub(crate) struct Taken {
    pub fence: Fence,
    pub image: ShardSnapshot,
    pub lists: Vec<ShardTopology>,
    pub reader: Arc<dyn Reader>,
    pub batch_bytes: usize,
    /// Before the take-over was sent.
    pub began: Monotonic,
    /// How long the shard may have been without an owner.
    pub outage: Duration,
}
