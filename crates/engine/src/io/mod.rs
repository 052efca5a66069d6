//! A shard's connections, and the task that owns them. It reports what it learns to the event loop as
//! events; it never touches memory of the queue.

mod backoff;
mod bisect;
mod claimed;
mod commit;
mod found;
mod heartbeat;
mod keys;
pub(crate) mod launch;
mod orders;
mod read_ahead;
pub(crate) mod reads;
mod server_settings;
mod take_over;
pub(crate) mod take_over_room;
mod task;

use std::{sync::Arc, time::Duration};

use forebay_store::{Settings, Shard};
use forebay_types::{Clock, Monotonic, ShardId};
use rand::rngs::StdRng;
use tokio::sync::{Notify, watch};

use self::{found::LastCommit, take_over_room::ServerRoom};
use crate::{
    api::{Duty, Peers, Tasks},
    messages::{
        event::ShardEvents,
        pulse::LoopPulse,
        shard::{SILENT_AFTER, ShardEvent},
    },
};

/// All that a shard's task works with.
pub(crate) struct ShardTask {
    /// The shard's number.
    pub id: ShardId,
    /// The shard, as anybody may reach it.
    pub shard: Arc<dyn Shard>,
    /// Where the store keeps it, for the log.
    pub server: String,
    /// Where this node answers, `host:port`; written into the shard's heartbeat.
    pub address: String,
    /// The way to other nodes: a candidate asks the owner whether it lives.
    pub peers: Arc<dyn Peers>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Runs the tasks beside this one.
    pub tasks: Arc<dyn Tasks>,
    /// How long a shard stays its owner's without a renewal.
    pub shard_lease: Duration,
    /// The server's settings, when they were looked at last.
    pub settings: Settings,
    /// The node's duty for the shard.
    pub duty: watch::Receiver<Duty>,
    /// Whether the event loop turns.
    pub pulse: LoopPulse,
    /// Room for take-overs of its server's shards.
    pub room: ServerRoom,
    /// Notified when a conflict has rolled a batch back.
    pub conflicts: Arc<Notify>,
    /// The epoch in which this task served the shard last, unless it has released it.
    pub served_last: Option<u64>,
    /// When the shard was given up last because a key was there already.
    pub duplicate_at: Option<Monotonic>,
    /// The last batch that is known to be committed, and its epoch.
    pub committed: LastCommit,
    /// Random numbers for incarnations and jitter.
    pub rng: StdRng,
    /// Where events go.
    pub events: ShardEvents,
}

/// The span until the next multiple of `every` by a clock, or the one after that if it is near. Tasks that
/// pause for so long go on at the same times, so that their store can ask a server about all of their shards
/// at once.
fn until_tick(clock: &dyn Clock, every: Duration) -> Duration {
    let into = clock.monotonic().into_interval(every);
    let left = every.saturating_sub(into);
    if left < every / 4 { left + every } else { left }
}

/// Waits for a shard's answer, and reports once if it does not come.
async fn watched<T>(events: &ShardEvents, answer: impl Future<Output = T>) -> T {
    tokio::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => return answer,
        () = tokio::time::sleep(SILENT_AFTER) => events.send(ShardEvent::Silent),
    }
    answer.await
}
