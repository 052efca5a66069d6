//! Takes a shard over, once its owner has released it or has lapsed.
//!
//! # Why no two nodes commit to one shard
//!
//! **The store decides, and nothing else.** A take-over moves the fence to the next epoch by compare-and-set
//! against what the candidate observed. Every batch ends in an update of that same row, which succeeds only
//! under the owner's epoch and incarnation, and only from the batch before. Whatever clocks, networks and
//! processes do, a batch of an old epoch fails at the fence.
//!
//! **A delayed COMMIT does no harm.** The take-over kills the old owner's connections first. A COMMIT that
//! was on its way either is through before the fence moves, so the new owner loads what it wrote, or finds
//! the fence moved and is rolled back. The update of the fence waits for a COMMIT that holds the row's lock.
//!
//! **Time only shortens the wait.** A candidate waits until heartbeat and batch number have not moved for a
//! whole shard lease *of its own clock*, so that a living owner is not disturbed. If that wait is too short,
//! an owner loses its shard early; nothing is lost with it.
//!
//! **Answers that write nothing need the clock.** "Your lease is lost" and "this is a duplicate" come from
//! memory. The owner gives them only until `trusted_until`, which is the *start* of its last successful
//! renewal or batch plus four fifths of the shard lease. A candidate saw that renewal no earlier than it
//! began, and waits a whole lease after that. A renewal that it has not seen makes its claim fail, because
//! the take-over compares the number of renewals too. The fifth in between covers clocks that run at
//! different speeds.

use std::time::Duration;

use forebay_store::{Claim, Observation, ShardConnections, StoreError};
use forebay_types::{Incarnation, Monotonic};
use rand::RngExt;

use super::{ShardTask, backoff::Backoff, watched};
use crate::{
    messages::shard::{ShardEvent, TakenOver},
    shard::image::ImageBuilder,
};

/// A shard whose owner's address still answers is taken all the same if nothing moved for so long.
const TAKE_OVER_AFTER_MAX: Duration = Duration::from_secs(10);
/// How often a candidate looks at a shard.
const OBSERVE_EVERY: Duration = Duration::from_millis(100);

/// What a candidate saw, and since when it has not changed.
struct Watch {
    /// The last observation.
    seen: Observation,
    /// When it was made first.
    since: Monotonic,
}

/// How an attempt ended.
enum Attempt {
    /// The shard is ours.
    TakenOver(Box<ShardConnections>),
    /// It has a living owner, which answers there. Empty: that is not known.
    Waits { owner: String },
}

/// Takes the shard over as soon as that may be. Tries until it succeeds.
pub(super) async fn acquire(task: &mut ShardTask) -> ShardConnections {
    let mut backoff = Backoff::new();
    let mut watch = None;
    let mut logged = String::new();
    loop {
        match attempt(task, &mut watch).await {
            Ok(Attempt::TakenOver(owned)) => return *owned,
            Ok(Attempt::Waits { owner }) => {
                backoff.reset();
                task.events.send(ShardEvent::Waits { owner });
                tokio::time::sleep(OBSERVE_EVERY).await;
            }
            Err(error) => {
                log_failure(task, &error, &mut logged);
                watch = None;
                task.events.send(ShardEvent::Unreachable(error));
                backoff.pause(&mut task.rng).await;
            }
        }
    }
}

/// Logs an error once: the same line every second would hide everything else.
fn log_failure(task: &ShardTask, error: &StoreError, logged: &mut String) {
    if *logged != error.message {
        let ShardTask { id, server, .. } = task;
        tracing::warn!(shard.id = id.0, %error, "cannot take over shard {id} ({server}); retrying");
        logged.clone_from(&error.message);
    }
}

/// Observes the shard, and takes it over if it has no living owner.
async fn attempt(task: &mut ShardTask, watch: &mut Option<Watch>) -> Result<Attempt, StoreError> {
    let look = async { Ok((task.shard.check().await?, task.shard.observe().await?)) };
    let (settings, seen) = watched(&task.events, look).await?;
    task.events.send(ShardEvent::Answered);
    task.events.send(ShardEvent::Observed { topology: seen.topology_history.clone() });
    let now = task.clock.monotonic();
    let outage = match watch {
        Some(watch) if watch.seen == seen => now.since(watch.since),
        _ => {
            *watch = Some(Watch { seen: seen.clone(), since: now });
            Duration::ZERO
        }
    };
    // Nobody has owned it since this task did, and its connections of then are gone.
    let outage = match task.served_last {
        // How long acks found nobody is not known here: since the last commit, and that may be long ago.
        Some(epoch) if epoch == seen.epoch => task.shard_lease,
        _ if has_lapsed(task, &seen, outage).await => outage,
        _ => return Ok(Attempt::Waits { owner: seen.address }),
    };
    let claim = Claim { incarnation: Incarnation(task.rng.random()), address: task.address.clone() };
    let began = task.clock.monotonic();
    let Some(owned) = task.shard.take_over(&claim, &seen).await? else {
        *watch = None;
        // Another candidate was faster. The next look shows who it is.
        return Ok(Attempt::Waits { owner: String::new() });
    };
    let snapshot = owned.reader.load().await?;
    let mut image = ImageBuilder::new(snapshot, task.clock.monotonic());
    while image.step() {
        // Others of this thread have their turn.
        tokio::task::yield_now().await;
    }
    let (ShardTask { id, server, .. }, epoch) = (&*task, owned.fence.epoch);
    tracing::info!(shard.id = id.0, epoch, "shard {id} ({server}) taken over");
    let taken_over = TakenOver {
        fence: owned.fence,
        image: image.finish(),
        reader: owned.reader.clone(),
        tasks: task.tasks.clone(),
        batch_bytes: settings.batch_bytes,
        concerns: settings.concerns(),
        began,
        outage,
    };
    task.settings = settings;
    task.events.send(ShardEvent::TakenOver(Box::new(taken_over)));
    Ok(Attempt::TakenOver(Box::new(owned)))
}

/// Whether the owner has released the shard, or has shown no sign of life for long enough.
async fn has_lapsed(task: &ShardTask, seen: &Observation, unchanged: Duration) -> bool {
    if seen.orphaned || seen.address.is_empty() {
        return true;
    }
    if unchanged < task.shard_lease {
        return false;
    }
    // Our own address in the heartbeat was written before this node restarted.
    let silent = seen.address == task.address || !task.peers.answers(&seen.address).await;
    silent || unchanged >= TAKE_OVER_AFTER_MAX
}
