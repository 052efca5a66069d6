//! What waits for a shard's next batch.

use std::time::Duration;

use forebay_store::{DueRow, Sweep};
use forebay_types::{Body, DeliveryPolicy, Key, Namespace, Receipt, Refusal, Timestamp, Topic, TopicId};

use crate::{NackAction, window::Entry};

/// 128 bits over a namespace and a dedupe key or request id.
pub(crate) type KeyHash = [u8; 16];

/// Whose answer it is: the call, and the member's place in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub call: u64,
    pub index: usize,
}

/// The items of one enqueue call that go to one shard.
#[derive(Debug)]
pub(crate) struct EnqueuePart {
    pub call: u64,
    pub namespace: Namespace,
    /// The call is one unit: never cut, and remembered under this hash.
    pub request: Option<KeyHash>,
    pub items: Vec<Placed>,
}

/// An item on its way to its shard.
#[derive(Debug)]
pub(crate) struct Placed {
    /// Its place in the call.
    pub index: usize,
    /// Given at admission, from one counter per node.
    pub rank: i64,
    pub topic: Topic,
    pub priority: i32,
    pub arrived: Timestamp,
    /// Not delivered before this time.
    pub due: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub lease_ms: u32,
    pub max_attempts: u32,
    pub policy: DeliveryPolicy,
    pub dedupe: Option<KeyHash>,
    /// The caller named the shard.
    pub pinned: bool,
    pub body: Body,
    /// It can't be stored: its call is answered, and remembered, with this.
    pub refused: Option<Refusal>,
}

impl Placed {
    /// What it is charged with while it waits.
    pub fn charge(&self) -> usize {
        self.body.bytes() + self.topic.len() + 128
    }
}

/// The items that one poll takes from one shard. They are out of the window.
#[derive(Debug, Clone)]
pub(crate) struct LeasePart {
    pub poll: u64,
    pub lease: Option<Duration>,
    pub consumer: String,
    pub picked: Vec<Picked>,
}

/// An item that was taken out of its window for a delivery.
#[derive(Debug, Clone)]
pub(crate) struct Picked {
    /// Its place in the poll's answer.
    pub position: usize,
    pub topic: TopicId,
    pub name: Topic,
    pub key: Key,
    pub entry: Entry,
}

/// The end, or the extension, of one delivery.
#[derive(Debug, Clone)]
pub(crate) struct Settle {
    pub receipt: Receipt,
    pub kind: SettleKind,
    /// `None`: nobody waits for the answer, the engine itself wants it.
    pub slot: Option<Slot>,
}

#[derive(Debug, Clone)]
pub(crate) enum SettleKind {
    Ack,
    Nack {
        action: NackAction,
        metadata: Option<Vec<u8>>,
        reason: String,
    },
    Extend {
        lease: Option<Duration>,
    },
    /// The lease ran out.
    Lapse,
}

/// A page that a sweep read.
#[derive(Debug)]
pub(crate) struct Page {
    pub sweep: Sweep,
    pub rows: Vec<DueRow>,
    /// There may be more rows up to `to`.
    pub full: bool,
    /// How far the scan looked.
    pub to: Timestamp,
}
