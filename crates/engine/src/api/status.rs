//! The engine's status, for operators.

use std::{borrow::Cow, time::Duration};

/// The engine's status for operators, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Status {
    /// One per configured shard.
    pub shards: Vec<ShardStatus>,
    /// Shards that are not configured any more, and in which dedupe keys may be remembered.
    pub missing_homes: Vec<MissingHome>,
    /// When the oldest item that is first in its topic became ready, in microseconds since the Unix epoch.
    /// Each status looks at 1,000 topics, and this is as of the last look at all.
    pub oldest_ready_micros: Option<i64>,
    /// Where other nodes answer whose items come to the consumers of this one, `host:port`.
    pub givers: Vec<String>,
    /// Long polls that wait.
    pub polls: usize,
    /// Topics and namespaces that are paused for new items.
    pub paused_enqueue: usize,
    /// Topics and namespaces that are paused for deliveries.
    pub paused_dequeue: usize,
    /// Bytes of enqueues that wait for their commit.
    pub admitted_bytes: usize,
    /// How many topics there are.
    pub topic_count: usize,
    /// Bytes that count for their rows.
    pub topic_bytes: usize,
    /// Bytes of the topics that this node follows at other nodes.
    pub followed_bytes: usize,
    /// Bytes of the topics that other nodes follow here.
    pub subscription_bytes: usize,
    /// Nodes that live, and whose items do not come to the consumers of this one.
    pub missing_sources: Vec<MissingSource>,
    /// The event loop's work.
    pub turns: TurnStatus,
    /// By how much steps have moved node time since the start.
    pub clock_stepped_micros: u64,
}

/// A node whose items do not come to the consumers of this one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MissingSource {
    /// Where it answers other nodes, `host:port`.
    pub address: String,
    /// Why they do not come, for people.
    pub why: Cow<'static, str>,
}

/// A shard that is not configured any more, and in which dedupe keys may be remembered. Enqueues with such
/// keys are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct MissingHome {
    /// Its number.
    pub shard: u32,
    /// Until when that is so, in microseconds since the Unix epoch.
    pub until_micros: i64,
}

/// The work of the engine's event loop. It is one task: while a turn lasts, nobody else is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct TurnStatus {
    /// Turns since the start.
    pub count: u64,
    /// Time spent in turns since the start.
    pub busy_nanos: u64,
    /// The longest turn since the status before this one.
    pub longest_nanos: u64,
}

impl TurnStatus {
    /// Time spent in turns since the start.
    pub const fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos)
    }

    /// The longest turn since the status before this one.
    pub const fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_nanos)
    }

    /// A turn ended that took so long.
    pub(crate) fn add(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count += 1;
        self.busy_nanos = self.busy_nanos.saturating_add(nanos);
        self.longest_nanos = self.longest_nanos.max(nanos);
    }
}

/// How many shards a node serves, and how many it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardCounts {
    /// Shards that it owns.
    pub owned: usize,
    /// Shards that it has not looked at yet.
    pub starting: usize,
    /// Shards that other nodes own.
    pub waiting: usize,
    /// Shards of other nodes whose items come here.
    pub linked: usize,
    /// Shards whose owners, other nodes, have shown no sign of life for a whole shard lease.
    pub silent: usize,
}

/// Whether a node owns a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ShardState {
    /// The node has not looked at it yet.
    #[default]
    Starting,
    /// The node owns it.
    Owned,
    /// Another node owns it. This one takes it over when that one lapses.
    Waiting,
    /// It does not answer.
    Unreachable,
    /// The node has given it up, because it stops.
    Stopped,
}

impl ShardState {
    /// The state's name on the page and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Owned => "owned",
            Self::Waiting => "waiting",
            Self::Unreachable => "unreachable",
            Self::Stopped => "stopped",
        }
    }
}

/// The calls that a shard's circuit breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerPhase {
    /// Everything.
    #[default]
    Closed,
    /// Nothing new.
    Open,
    /// One batch, to see whether the shard has recovered.
    HalfOpen,
}

impl BreakerPhase {
    /// The phase's name on the page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// One shard, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct ShardStatus {
    /// Its number.
    pub id: u32,
    /// Where the store keeps it: `host:port`, or a folder.
    pub server: String,
    /// Whether this node owns it.
    pub state: ShardState,
    /// Since when this node owns it, in microseconds since the Unix epoch.
    pub owned_since_micros: Option<i64>,
    /// Where the owner that is waited for answers, `host:port`; empty if none is.
    pub owner: String,
    /// Since when it does not answer, in microseconds since the Unix epoch.
    pub silent_since_micros: Option<i64>,
    /// The state of its circuit breaker.
    pub breaker: BreakerPhase,
    /// Since when the breaker is not closed, in microseconds since the Unix epoch.
    pub breaker_since_micros: Option<i64>,
    /// It takes no new items, because it is drained.
    pub draining: bool,
    /// Until when dedupe keys may be remembered in it that have their home elsewhere by now, in microseconds
    /// since the Unix epoch. Absent: it is a home, or that is over.
    pub keys_until_micros: Option<i64>,
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
    /// How far the server's clock is ahead of node time, in microseconds; for a store without a clock the
    /// machine's.
    pub clock_offset_micros: i64,
    /// Settings of the server that may lose commits, or that are better changed, one sentence each.
    pub concerns: Vec<String>,
    /// Its losses, as this node found when it took it over, one sentence each.
    pub losses: Vec<String>,
    /// The last failure, for people; empty if none.
    pub last_error: String,
    /// Where each sweep is, and how many rows it moved.
    pub sweeps: Vec<SweepStatus>,
}

/// One sweep of one shard, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct SweepStatus {
    /// Its name.
    pub name: String,
    /// Rows moved since the shard was taken over.
    pub moved: u64,
    /// Where it continues, in microseconds since the Unix epoch.
    pub checkpoint_micros: i64,
    /// The time of the first row that it has not moved, as far as it is known, in microseconds since the Unix
    /// epoch. Absent: there is none, or it has not looked yet.
    pub next_micros: Option<i64>,
}
