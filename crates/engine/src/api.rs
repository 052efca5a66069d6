//! What goes into the engine and what comes out: checked values, no protobuf.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use forebay_types::{
    Body, DeliveryPolicy, ItemId, Limits, Namespace, Receipt, Refusal, ShardId, Timestamp, Topic,
};

/// An enqueue call: checked, but not yet placed.
#[derive(Debug, Clone)]
pub struct EnqueueCall {
    /// The tenant.
    pub namespace: Namespace,
    /// What to store.
    pub items: Vec<NewItem>,
    /// Makes a repeated call harmless. Not with an item that names a dedupe key or a shard.
    pub request_id: Option<String>,
}

/// An item to store.
#[derive(Debug, Clone)]
pub struct NewItem {
    /// Its topic.
    pub topic: Topic,
    /// The smaller number goes first.
    pub priority: i32,
    /// What it carries.
    pub body: Body,
    /// When it may be delivered.
    pub schedule: Schedule,
    /// Its lease duration.
    pub lease: Duration,
    /// Its time to live, from arrival.
    pub ttl: Option<Duration>,
    /// Whether it needs an ack.
    pub policy: DeliveryPolicy,
    /// How many deliveries may fail.
    pub max_attempts: u32,
    /// A second item with this key inside the window is not stored. Not with `shard`.
    pub dedupe_key: Option<String>,
    /// Store it here and nowhere else.
    pub shard: Option<ShardId>,
}

/// When an item may be delivered first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// At once.
    Now,
    /// This long after its arrival.
    Delay(Duration),
    /// Not before this time.
    After(Timestamp),
}

/// An item that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id, or that of the item that was there before.
    pub id: ItemId,
    /// It was there before.
    pub duplicate: bool,
}

/// A dequeue call. The topics are distinct.
#[derive(Debug, Clone)]
pub struct DequeueCall {
    /// The tenant.
    pub namespace: Namespace,
    /// What is asked for, in the order of the answer.
    pub demands: Vec<Demand>,
    /// How long to wait if nothing is there. Already cut to the limit and to the call's deadline.
    pub wait: Duration,
    /// Overrides the items' own lease duration.
    pub lease: Option<Duration>,
    /// Who asks; may be empty.
    pub consumer: String,
    /// At most so many bytes of bodies, but at least one item.
    pub max_bytes: usize,
}

/// One topic of a dequeue call.
#[derive(Debug, Clone)]
pub struct Demand {
    /// The topic.
    pub topic: Topic,
    /// At most so many items.
    pub max_items: usize,
}

/// One item that is handed out.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The item.
    pub id: ItemId,
    /// Names this delivery; `None` for an at-most-once item.
    pub receipt: Option<Receipt>,
    /// Its topic.
    pub topic: Topic,
    /// Its priority.
    pub priority: i32,
    /// What it carries.
    pub body: Body,
    /// Numbers the deliveries from 1.
    pub attempt: u32,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When the lease ends; `None` for an at-most-once item.
    pub lease_expires_at: Option<Timestamp>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Whether it needs an ack.
    pub policy: DeliveryPolicy,
}

/// A nack of one delivery.
#[derive(Debug, Clone)]
pub struct NackOf {
    /// The delivery.
    pub receipt: Receipt,
    /// What is to become of the item.
    pub action: NackAction,
    /// New metadata.
    pub metadata: Option<Vec<u8>>,
    /// Why; may be empty.
    pub reason: String,
}

/// What is to become of a nacked item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NackAction {
    /// It failed; ready again after the delay.
    Fail(Duration),
    /// It did not fail; ready again after the delay. Without a delay it keeps its old place.
    Release(Duration),
    /// To the dead letters at once.
    DeadLetter,
}

/// An extension of one delivery.
#[derive(Debug, Clone, Copy)]
pub struct ExtendOf {
    /// The delivery.
    pub receipt: Receipt,
    /// From now; `None`: the item's own duration.
    pub lease: Option<Duration>,
}

/// The answer to one member of an ack or nack call.
pub type Settled = Result<(), Refusal>;
/// The answer to one member of an extension call: when the lease ends now.
pub type Extended = Result<Timestamp, Refusal>;

/// A page of active topics is asked for.
#[derive(Debug, Clone)]
pub struct ActiveTopicsCall {
    /// The tenant.
    pub namespace: Namespace,
    /// At most so many.
    pub limit: usize,
    /// Go on behind this position.
    pub after: Option<TopicPosition>,
    /// Only names that begin so; may be empty.
    pub prefix: String,
}

/// Where a topic stands among the active ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicPosition {
    /// Priority of its first item.
    pub best_priority: i32,
    /// When its first item became ready.
    pub oldest_ready_at: Timestamp,
    /// Breaks ties.
    pub topic: Topic,
}

/// A topic that has something to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTopic {
    /// Its place, most urgent first.
    pub position: TopicPosition,
    /// Items that could be leased now.
    pub ready: u64,
    /// Items that are leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
}

/// A page of active topics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActiveTopics {
    /// The topics, most urgent first.
    pub topics: Vec<ActiveTopic>,
    /// There are more behind the last one.
    pub more: bool,
}

/// The way to other nodes, as far as the engine needs it.
#[async_trait]
pub trait Peers: Send + Sync + 'static {
    /// Whether a node answers at this address, `host:port`, within half a second. A candidate for a shard
    /// asks the owner that stopped renewing.
    async fn answers(&self, address: &str) -> bool;
}

/// For an engine that is alone: nobody answers.
#[async_trait]
impl Peers for () {
    async fn answers(&self, _address: &str) -> bool {
        false
    }
}

/// How the engine works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What is allowed.
    pub limits: Limits,
    /// Bytes of ready index and cached bodies, over all shards.
    pub index_bytes: usize,
    /// Bytes of enqueues that wait for their commit, over all shards.
    pub admit_bytes: usize,
    /// The same for one shard.
    pub admit_shard_bytes: usize,
    /// The same for one tenant in one shard.
    pub admit_tenant_bytes: usize,
    /// Rows of one batch.
    pub batch_rows: usize,
    /// Batches under way at one server while small ones of its other shards wait for their turn.
    pub batches_per_server: usize,
    /// How long keys and request ids are remembered, where a namespace has no window of its own.
    pub dedupe_window: Duration,
    /// Windows of single namespaces.
    pub dedupe_windows: BTreeMap<String, Duration>,
    /// How long a shard stays its owner's without a renewal.
    pub shard_lease: Duration,
    /// How long a topic with nothing in it is kept.
    pub idle_topic: Duration,
    /// Long polls that may wait.
    pub polls: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            index_bytes: 256 << 20,
            admit_bytes: 256 << 20,
            admit_shard_bytes: 32 << 20,
            admit_tenant_bytes: 8 << 20,
            batch_rows: 1_000,
            batches_per_server: 4,
            dedupe_window: Duration::from_secs(600),
            dedupe_windows: BTreeMap::new(),
            shard_lease: Duration::from_millis(1_500),
            idle_topic: Duration::from_secs(3_600),
            polls: 50_000,
        }
    }
}

/// What operators see of the engine, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Status {
    /// One per configured shard.
    pub shards: Vec<ShardStatus>,
    /// Long polls that wait.
    pub polls: usize,
    /// Bytes of enqueues that wait for their commit.
    pub admitted_bytes: usize,
    /// Every topic of this node's shards, by name; cut at 1,000.
    pub topics: Vec<TopicStatus>,
    /// How many topics there are.
    pub topic_count: usize,
}

/// One shard, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct ShardStatus {
    /// Its number.
    pub id: u32,
    /// `owned`, `waiting` (for another owner to lapse), `unreachable` or `stopped`.
    pub state: String,
    /// `closed`, `open` or `half-open`.
    pub breaker: String,
    /// The owner's epoch.
    pub epoch: u64,
    /// The last committed batch.
    pub batch: u64,
    /// Items ready to be leased.
    pub ready: u64,
    /// Items leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
    /// Topics.
    pub topics: usize,
    /// Bytes of ready index and cached bodies.
    pub index_bytes: usize,
    /// How long the last commit took, in microseconds.
    pub commit_micros: u64,
    /// How far the server's clock is ahead of node time, in microseconds; 0 for a store without a clock.
    pub clock_offset_micros: i64,
    /// The last failure, for people; empty if none.
    pub last_error: String,
    /// When each sweep last ran and how many rows it moved.
    pub sweeps: Vec<SweepStatus>,
}

/// One sweep of one shard, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct SweepStatus {
    /// Its name.
    pub name: String,
    /// Rows moved since the shard was taken over.
    pub moved: u64,
    /// Where it goes on, in microseconds since the Unix epoch.
    pub checkpoint_micros: i64,
}

/// One topic over all shards of the node, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct TopicStatus {
    /// The tenant.
    pub namespace: String,
    /// The topic.
    pub topic: String,
    /// Items ready to be leased.
    pub ready: u64,
    /// Items leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
    /// Consumers that wait.
    pub waiting: usize,
}
