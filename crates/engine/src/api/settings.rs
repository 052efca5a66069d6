//! How the engine works.

use std::{collections::BTreeMap, time::Duration};

use forebay_types::{Limits, Timestamp, TopicSettings};

use super::ReportedTopics;
use crate::planted::{Bug, on};

/// The bytes that a topic counts as in one shard, with its place in the topic directory and one ready item.
pub const TOPIC_BYTES: usize = 1 << 10;

/// How the engine works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The limits.
    pub limits: Limits,
    /// Bytes of ready index and cached bodies, over all shards.
    pub index_bytes: usize,
    /// Bytes of topics, over all shards. A topic counts as [`TOPIC_BYTES`] in each shard in which it has a
    /// row.
    pub topic_bytes: usize,
    /// Bytes of enqueues that wait for their commit, over all shards; one tenant has at most a quarter.
    pub admit_bytes: usize,
    /// The same for one shard. As many bytes of acks, nacks and extensions may wait beside them.
    pub admit_shard_bytes: usize,
    /// The same for one tenant in one shard, of each.
    pub admit_tenant_bytes: usize,
    /// Rows of one batch.
    pub batch_rows: usize,
    /// Rows of one page of a sweep.
    pub sweep_rows: usize,
    /// Batches in flight at one server while small ones of its other shards wait for their turn.
    pub batches_per_server: usize,
    /// How long keys and request ids are remembered, where a namespace has no window of its own.
    pub dedupe_window: Duration,
    /// Windows of single namespaces.
    pub dedupe_windows: BTreeMap<String, Duration>,
    /// How long dead letters are kept, where a namespace has no retention of its own. Zero: for ever.
    pub dead_letter_retention: Duration,
    /// Retentions of single namespaces.
    pub dead_letter_retentions: BTreeMap<String, Duration>,
    /// How long a shard stays its owner's without a renewal.
    pub shard_lease: Duration,
    /// How long memory keeps a topic without items.
    pub idle_topic: Duration,
    /// Topics that one turn of the event loop visits, where it has to visit all of a shard.
    pub topics_per_turn: usize,
    /// How long a shard whose head is unknown is waited for, and how late the rest of an answer may come.
    pub head_timeout: Duration,
    /// Long polls that may wait.
    pub polls: usize,
    /// Bytes of long polls that may wait; one tenant has at most a quarter.
    pub poll_bytes: usize,
    /// Bytes of topics that this node follows at other nodes, and as many of those that these follow here;
    /// one tenant has at most a quarter.
    pub followed_bytes: usize,
    /// Which topics have metrics of their own.
    pub reported: ReportedTopics,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            index_bytes: 256 << 20,
            topic_bytes: 2 << 30,
            admit_bytes: 256 << 20,
            admit_shard_bytes: 32 << 20,
            admit_tenant_bytes: 8 << 20,
            batch_rows: 1_000,
            sweep_rows: 250,
            batches_per_server: 4,
            dedupe_window: Duration::from_secs(600),
            dedupe_windows: BTreeMap::new(),
            dead_letter_retention: Duration::from_secs(14 * 86_400),
            dead_letter_retentions: BTreeMap::new(),
            shard_lease: Duration::from_millis(1_500),
            idle_topic: Duration::from_secs(3_600),
            topics_per_turn: 256,
            head_timeout: Duration::from_millis(50),
            polls: 50_000,
            poll_bytes: 384 << 20,
            followed_bytes: 64 << 20,
            reported: ReportedTopics::default(),
        }
    }
}

impl Settings {
    /// The node's defaults for a topic or a namespace. Every field is there.
    pub fn defaults_of(&self, namespace: &str) -> TopicSettings {
        TopicSettings {
            default_lease: Some(self.limits.lease_default),
            default_max_attempts: Some(self.limits.attempts_default),
            retry_delay: Some(Duration::ZERO),
            dead_letter_retention: Some(self.retention_of(namespace)),
            weight: Some(1),
            dedupe_window: Some(self.dedupe_window_of(namespace)),
        }
    }

    fn dedupe_window_of(&self, namespace: &str) -> Duration {
        self.dedupe_windows.get(namespace).copied().unwrap_or(self.dedupe_window)
    }

    fn retention_of(&self, namespace: &str) -> Duration {
        self.dead_letter_retentions.get(namespace).copied().unwrap_or(self.dead_letter_retention)
    }

    /// How long a namespace's dedupe keys and request ids are remembered, if so much is set for it. Keys are
    /// kept for the longest window of the configuration, so no other one is longer.
    pub(crate) fn dedupe_window(&self, set: Option<Duration>, namespace: &str) -> Duration {
        let window = set.unwrap_or_else(|| self.dedupe_window_of(namespace));
        window.min(self.longest_dedupe_window())
    }

    /// When a dead letter of a namespace is deleted that died at this time, if so long a retention is set for
    /// its topic. [`Timestamp::MAX`]: never.
    pub(crate) fn dead_letter_end(
        &self,
        set: Option<Duration>,
        namespace: &str,
        died_at: Timestamp,
    ) -> Timestamp {
        let retention = set.unwrap_or_else(|| self.retention_of(namespace));
        let retention = if on(Bug::RetentionCutShort) { retention / 4 } else { retention };
        if retention.is_zero() { Timestamp::MAX } else { died_at.plus(retention) }
    }

    /// Topics of all shards together, each counted in each of its shards.
    pub(crate) fn topics_max(&self) -> usize {
        self.topic_bytes / TOPIC_BYTES
    }

    /// The longest of all dedupe windows.
    pub fn longest_dedupe_window(&self) -> Duration {
        self.dedupe_windows.values().copied().fold(self.dedupe_window, Duration::max)
    }
}
