//! What the cases work with.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use forebay_store::{
    Batch, Claim, CommitError, Heartbeat, HighWaterMarks, ItemRow, LeaseEntry, Observation, Reader, ReadyRow,
    Shard, ShardConnections, ShardSnapshot, TopicCounts, TopicRow, Writer,
};
use forebay_types::{Body, DeliveryPolicy, Incarnation, Key, Seq, State, Timestamp, TopicId, TopicName};

use super::Subject;

/// Some day in 2026.
pub(super) const NOW: i64 = 1_780_000_000_000_000;

/// An owner at work.
pub(super) struct Bench {
    pub(super) subject: Subject,
    pub(super) owner: Owner,
}

pub(super) struct Owner {
    pub(super) fence: forebay_store::Fence,
    pub(super) writer: Box<dyn Writer>,
    pub(super) heartbeat: Box<dyn Heartbeat>,
    pub(super) reader: Arc<dyn Reader>,
}

impl Bench {
    /// Migrates and takes over.
    pub(super) async fn new(subject: Subject) -> Self {
        subject.shard.migrate().await.expect("migrates");
        let owner = Owner::take(&*subject.shard).await;
        Self { subject, owner }
    }

    pub(super) fn shard(&self) -> &dyn Shard {
        &*self.subject.shard
    }

    pub(super) async fn observe(&self) -> Observation {
        self.shard().observe().await.expect("observes")
    }

    /// Another owner takes the place of this one: by force where the store can, else after it is gone.
    pub(super) async fn succeed(self) -> Self {
        drop(self.owner);
        let owner = Owner::take(&*self.subject.shard).await;
        Self { subject: self.subject, owner }
    }
}

impl Owner {
    pub(super) async fn take(shard: &dyn Shard) -> Self {
        let seen = shard.observe().await.expect("observes");
        shard.take_over(&claim(), &seen).await.expect("takes over").expect("nothing moved").into()
    }

    /// The batch that is next.
    pub(super) fn batch(&self) -> Batch {
        Batch { number: self.fence.batch + 1, ..Batch::default() }
    }

    pub(super) async fn try_commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.writer.commit(batch).await?;
        self.fence.batch = batch.number;
        Ok(())
    }

    /// Commits what `fill` puts into the next batch.
    pub(super) async fn commit(&mut self, fill: impl FnOnce(&mut Batch)) {
        let mut batch = self.batch();
        fill(&mut batch);
        self.try_commit(&batch).await.expect("commits");
    }

    pub(super) async fn load(&self) -> ShardSnapshot {
        self.reader.load().await.expect("loads")
    }

    /// The ready items of a topic, all of them.
    pub(super) async fn ready(&self, topic: TopicId) -> Vec<ReadyRow> {
        self.reader.ready(topic, Key::MIN, 10_000, true).await.expect("reads")
    }

    pub(super) async fn ready_seqs(&self, topic: TopicId) -> Vec<u64> {
        self.ready(topic).await.into_iter().map(|row| row.key.seq.0).collect()
    }
}

impl From<ShardConnections> for Owner {
    fn from(ShardConnections { fence, writer, heartbeat, reader }: ShardConnections) -> Self {
        Self { fence, writer, heartbeat, reader }
    }
}

/// Somebody who was never there before.
pub(super) fn claim() -> Claim {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Several processes may test at one server.
    let process = u64::from(std::process::id());
    let incarnation = (u128::from(process) << 64 | u128::from(number)).to_be_bytes();
    Claim { incarnation: Incarnation(incarnation), address: format!("node-{number}:7420") }
}

pub(super) const TOPIC: TopicId = TopicId(1);

pub(super) fn topic(id: u32) -> TopicRow {
    let name = TopicName::new("tenant", format!("topic-{id}"));
    TopicRow { id: TopicId(id), name, counts: TopicCounts::default() }
}

pub(super) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(NOW + micros)
}

/// An item of [`TOPIC`], ready since `seq` microseconds after [`NOW`].
pub(super) fn item(seq: u64) -> ItemRow {
    let rank = NOW + i64::try_from(seq).unwrap_or(0);
    ItemRow {
        topic: TOPIC,
        key: Key { priority: 0, rank, seq: Seq(seq) },
        state: State::Ready,
        enqueued_at: at(0),
        expires_at: None,
        lease_ms: 30_000,
        max_attempts: 16,
        policy: DeliveryPolicy::AtLeastOnce,
        deliveries: 0,
        failures: 0,
        body: Body { payload: format!("payload {seq}").into(), ..Body::default() },
    }
}

/// The same, waiting for a time.
pub(super) fn scheduled(seq: u64, due: Timestamp) -> ItemRow {
    let mut item = item(seq);
    item.state = State::Scheduled;
    item.key.rank = due.as_micros();
    item
}

/// What [`ItemRow`] looks like when it is read.
pub(super) fn as_ready(item: &ItemRow) -> ReadyRow {
    ReadyRow {
        key: item.key,
        enqueued_at: item.enqueued_at,
        expires_at: item.expires_at,
        lease_ms: item.lease_ms,
        max_attempts: item.max_attempts,
        policy: item.policy,
        deliveries: item.deliveries,
        failures: item.failures,
        bytes: u32::try_from(item.body.bytes()).expect("small"),
        body: Some(item.body.clone()),
    }
}

pub(super) fn entry(seq: u64, deadline: Timestamp) -> LeaseEntry {
    LeaseEntry {
        seq: Seq(seq),
        topic: TOPIC,
        priority: -5,
        rank: NOW,
        enqueued_at: at(0),
        bytes: 9,
        expires_at: Some(at(1_000_000)),
        delivery: 1,
        failures: 0,
        max_attempts: 16,
        lease_ms: 30_000,
        nonce: u64::MAX - seq,
        deadline,
        consumer: "worker".to_owned(),
    }
}

pub(super) fn marks(seq: u64) -> HighWaterMarks {
    HighWaterMarks { seq: Seq(seq), topic: TopicId(9), rank: NOW + 7, time: at(11) }
}
