//! The tools of the test cases.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_store::{
    Batch, Claim, CommitError, DueKey, Heartbeat, HighWaterMarks, ItemRow, LeaseEntry, Observation,
    ReadAhead, Reader, ReadyRow, Shard, ShardConnections, ShardSnapshot, TopicCounts, TopicRow, Writer,
};
use forebay_types::{
    Body, ClusterId, DeliveryPolicy, Failure, FailureCause, Incarnation, ItemAttributes, Key, Seq, State,
    Timestamp, TopicId, TopicName,
};

use super::Subject;

/// A day in 2026.
pub(super) const NOW: i64 = 1_780_000_000_000_000;

/// A shard with an owner.
pub(super) struct Bench {
    /// The shard.
    pub(super) subject: Subject,
    /// Its owner.
    pub(super) owner: Owner,
}

/// The owner's connections.
pub(super) struct Owner {
    /// The fence, as of the last batch.
    pub(super) fence: forebay_store::Fence,
    /// Writes batches.
    pub(super) writer: Box<dyn Writer>,
    /// Renews the claim.
    pub(super) heartbeat: Box<dyn Heartbeat>,
    /// Reads the shard.
    pub(super) reader: Arc<dyn Reader>,
    /// The shard, as others see it.
    shard: Arc<dyn Shard>,
    /// Rows that were read ahead when the shard was loaded last, or taken over.
    ahead: Mutex<ReadAhead>,
}

impl Bench {
    /// Migrates the shard and takes it over.
    pub(super) async fn new(subject: Subject) -> Self {
        subject.shard.migrate(ClusterId::default()).await.expect("migrates");
        let owner = Owner::take(&subject.shard).await;
        Self { subject, owner }
    }

    pub(super) fn shard(&self) -> &dyn Shard {
        &*self.subject.shard
    }

    pub(super) async fn observe(&self) -> Observation {
        self.shard().observe().await.expect("observes")
    }

    /// A new owner takes the shard over after this one is gone.
    pub(super) async fn succeed(self) -> Self {
        drop(self.owner);
        let owner = Owner::take(&self.subject.shard).await;
        Self { subject: self.subject, owner }
    }
}

impl Owner {
    pub(super) async fn take(shard: &Arc<dyn Shard>) -> Self {
        let seen = shard.observe().await.expect("observes");
        let ahead = shard.read_ahead().await.expect("reads ahead");
        let taken = shard.take_over(&claim(), &seen).await.expect("takes over");
        Self::new(shard, ahead, taken.expect("nothing moved"))
    }

    pub(super) fn new(shard: &Arc<dyn Shard>, ahead: ReadAhead, taken: ShardConnections) -> Self {
        let ShardConnections { fence, behind: _, writer, heartbeat, reader } = taken;
        Self { fence, writer, heartbeat, reader, shard: shard.clone(), ahead: Mutex::new(ahead) }
    }

    /// The next batch, still empty.
    pub(super) fn batch(&self) -> Batch {
        Batch { number: self.fence.batch + 1, ..Batch::default() }
    }

    pub(super) async fn try_commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.writer.commit(batch).await?;
        self.fence.batch = batch.number;
        Ok(())
    }

    /// Commits the next batch, with the changes that `fill` adds.
    pub(super) async fn commit(&mut self, fill: impl FnOnce(&mut Batch)) {
        let mut batch = self.batch();
        fill(&mut batch);
        self.try_commit(&batch).await.expect("commits");
    }

    /// Loads the shard as a new owner. The result is the same with the rows that were read ahead at the last
    /// load.
    pub(super) async fn load(&self) -> ShardSnapshot {
        let loaded = self.reader.load(ReadAhead::default()).await.expect("loads");
        let ahead = self.shard.read_ahead().await.expect("reads ahead");
        let before = std::mem::replace(&mut *self.ahead.lock().unwrap(), ahead);
        assert_eq!(self.reader.load(before).await.expect("loads the rest"), loaded);
        loaded
    }

    /// All ready items of a topic.
    pub(super) async fn ready(&self, topic: TopicId) -> Vec<ReadyRow> {
        self.reader.ready(topic, Key::MIN, 10_000, usize::MAX).await.expect("reads")
    }

    pub(super) async fn ready_seqs(&self, topic: TopicId) -> Vec<u64> {
        self.ready(topic).await.into_iter().map(|row| row.key.seq.0).collect()
    }
}

/// A new candidate.
pub(super) fn claim() -> Claim {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Several test processes may share a server.
    let process = u64::from(std::process::id());
    let incarnation = (u128::from(process) << 64 | u128::from(number)).to_be_bytes();
    Claim {
        incarnation: Incarnation(incarnation),
        address: format!("node-{number}:7420"),
        lease: Duration::from_millis(1_500),
    }
}

/// The topic of most items.
pub(super) const TOPIC: TopicId = TopicId(1);

/// A topic without items.
pub(super) fn topic(id: u32) -> TopicRow {
    let name = TopicName::new("tenant", format!("topic-{id}"));
    TopicRow { id: TopicId(id), name, counts: TopicCounts::default() }
}

/// A time relative to [`NOW`].
pub(super) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(NOW + micros)
}

/// Attributes of an item that was enqueued at [`NOW`].
fn attributes(expires_at: Option<Timestamp>, deliveries: u32) -> ItemAttributes {
    ItemAttributes {
        enqueued_at: at(0),
        expires_at,
        lease_ms: 30_000,
        max_attempts: 16,
        policy: DeliveryPolicy::AtLeastOnce,
        deliveries,
        failures: 0,
        redrives: 0,
        updated_by: 0,
        waits: forebay_types::Waits::Unsaid,
    }
}

/// An item of [`TOPIC`], ready since `seq` microseconds after [`NOW`].
pub(super) fn item(seq: u64) -> ItemRow {
    let rank = NOW + i64::try_from(seq).unwrap_or(0);
    ItemRow {
        topic: TOPIC,
        key: Key { priority: 0, rank, seq: Seq(seq) },
        state: State::Ready,
        attributes: attributes(None, 0),
        body: Body { payload: format!("payload {seq}").into(), ..Body::default() },
    }
}

/// The same item, scheduled for a time.
pub(super) fn scheduled(seq: u64, due: Timestamp) -> ItemRow {
    let mut item = item(seq);
    item.state = State::Scheduled;
    item.key.rank = due.as_micros();
    item
}

/// The same item with a time to live.
pub(super) fn expiring(mut item: ItemRow, end: Timestamp) -> ItemRow {
    item.attributes.expires_at = Some(end);
    item
}

/// The key of a row in `schedule` or `expiry`.
pub(super) fn due_key(at: Timestamp, seq: u64) -> DueKey {
    DueKey { at, seq: Seq(seq) }
}

/// An item as a reader returns it, with its body.
pub(super) fn as_ready(item: &ItemRow) -> ReadyRow {
    ReadyRow {
        key: item.key,
        attributes: item.attributes,
        bytes: u32::try_from(item.body.bytes()).expect("small"),
        body: Some(item.body.clone()),
        unreadable: false,
    }
}

/// A delivery of an item.
pub(super) fn entry(seq: u64, deadline: Timestamp) -> LeaseEntry {
    LeaseEntry {
        seq: Seq(seq),
        topic: TOPIC,
        priority: -5,
        rank: NOW,
        attributes: attributes(Some(at(1_000_000)), 1),
        bytes: 9,
        nonce: u64::MAX - seq,
        leased_at: at(3),
        deadline,
        consumer: "worker".to_owned(),
        began: 1,
    }
}

/// A failed delivery.
pub(super) fn failure(attempt: u32, reason: &str) -> Failure {
    Failure {
        attempt,
        consumer: "worker".to_owned(),
        leased_at: at(1),
        ended_at: at(2),
        cause: FailureCause::Nacked,
        reason: reason.to_owned(),
    }
}

/// High-water marks.
pub(super) fn marks(seq: u64) -> HighWaterMarks {
    HighWaterMarks { seq: Seq(seq), topic: TopicId(9), rank: NOW + 7, time: at(11) }
}
