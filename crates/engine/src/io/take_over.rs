//! Takes a shard over, once its owner has released it or has lapsed.
//!
//! # Why no two nodes commit to one shard
//!
//! **The store decides, and nothing else.** A take-over moves the fence to the next epoch by compare-and-set
//! against what the candidate observed. Every batch ends in an update of that same row, which succeeds only
//! under the owner's epoch and incarnation, and only from the batch before. Whatever clocks, networks and
//! processes do, a batch of an old epoch fails at the fence.
//!
//! **A delayed COMMIT does no harm.** The take-over kills the old owner's writing connection first. A
//! COMMIT that was on its way either is through before the fence moves, so the new owner loads what it
//! wrote, or finds the fence moved and is rolled back. The update of the fence waits for a COMMIT that
//! holds the row's lock.
//!
//! **A delayed renewal does no harm.** It comes on a connection that all shards of a node share, so a
//! take-over does not kill that. The renewal changes the heartbeat's row only under its owner's epoch and
//! incarnation, and the take-over writes its own into the same row. So either the renewal is through before:
//! then the number of renewals is not what the candidate saw, and its claim fails. Or it comes after, and
//! finds that the shard is lost.
//!
//! **Time only shortens the wait.** A candidate waits until heartbeat and batch number have not moved for a
//! whole shard lease *of its own clock*, so that a living owner is not disturbed. If that wait is too short,
//! an owner loses its shard early; nothing is lost with it.
//!
//! **Answers that write nothing need the clock.** "Your lease is lost" and "this is a duplicate" come from
//! memory. The owner gives them only until `trusted_until`, which is the *start* of its last successful
//! renewal or batch plus four fifths of the shard lease. A candidate saw that renewal no earlier than it
//! began, and waits a whole lease after that, by the owner's own lease as the heartbeat has it. A renewal
//! that it has not seen makes its claim fail, because the take-over compares the number of renewals too. The
//! fifth in between covers clocks that run at different speeds.
//!
//! **An owner that says no has stepped down.** A candidate asks the owner before it takes a silent shard. The
//! owner drops the shard's memory before it denies to own it (`ownership/mod.rs::owns`), so from then on it
//! answers nobody for it, and there is nothing to wait for.
//!
//! # When a shard may be taken over
//!
//! `claim/watch.rs` decides that. Only if that is the node's duty, and one of these holds:
//!
//! - its owner released it, and handed it to this node, to nobody, or to a node that did not come within a
//!   second;
//! - the store knows that its owner is dead (SQLite: the lock of the file beside the database is free);
//! - this node's own task was the last owner: it gave the shard up, and its connections of then are gone;
//! - nothing has moved for two thirds of the owner's lease, and the owner denies to own it;
//! - nothing has moved for the whole lease, and the owner does not answer;
//! - nothing has moved for 10 s, and all that is known of the owner is that its process lives, or that it
//!   isn't sure of its claim beside a slow server.
//!
//! A node that is not to own the shard looks at it too, and asks its owner in time, so that the question is
//! answered when the shard is given to it.
//!
//! In the last three cases a candidate first commits a row of its own at the shard's server, within half a
//! second, and only then asks: where a server is slow, so are the owner's renewals. It would step down for
//! nothing, and no other node would do better. Some of what one does at a slow server is fast, so that
//! this is not enough: the question says whether the server was slow within the last 3 s, and if so, an owner
//! that is not sure of its claim keeps the shard. It then counts as one that is known only to live.

use std::time::Duration;

use forebay_store::{Claim, Observation, StoreError};
use forebay_types::{Incarnation, Monotonic};
use rand::RngExt;

use super::{
    ShardTask,
    backoff::Backoff,
    claimed::ClaimedShard,
    found::{LastCommit, losses},
    read_ahead::{Ahead, PendingRead},
    until_tick, watched,
};
use crate::{
    api::OwnerQuestion,
    claim::{CandidateNode, Decision, Lapse, Watch},
    messages::shard::{ShardEvent, TakenShard, Waits},
    shard::image::ImageBuilder,
};

/// How often a candidate looks at a shard.
const OBSERVE_EVERY: Duration = Duration::from_millis(100);
/// The same for a moment after the shard became this node's to own: its owner is about to hand it over.
const OBSERVE_SOON_EVERY: Duration = Duration::from_millis(20);
/// How long that moment lasts.
const SOON: Duration = Duration::from_secs(3);
/// How often a node looks at a shard that others are to own.
const OBSERVE_IDLE_EVERY: Duration = Duration::from_millis(250);
/// A server that takes longer to commit a row is too slow for a take-over.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// A server that takes longer to let itself be looked at is slow.
const SLOW: Duration = Duration::from_millis(400);
/// A server that was slow counts as that for so long: not all of what one does there is slow.
const SLOW_FOR: Duration = Duration::from_secs(3);

/// The knowledge of one term's candidate.
#[derive(Default)]
struct Candidate {
    /// The watch over the shard.
    watch: Option<Watch>,
    /// The schema was checked in this term.
    checked: bool,
    /// The shard was another node's to own when the duty was looked at last.
    unwanted: bool,
    /// Until then it is looked at more often, because it is about to be handed over.
    soon_until: Monotonic,
    /// The read of the shard while its owner serves it.
    ahead: Option<PendingRead>,
    /// How fast the server was.
    speed: Speed,
    /// The last failure in the log.
    logged: String,
}

/// When the server was slow last.
#[derive(Debug, Clone, Copy, Default)]
struct Speed(Option<Monotonic>);

impl Speed {
    /// A request to the server that began at `began` has ended.
    fn note(&mut self, began: Monotonic, now: Monotonic) {
        if now.since(began) >= SLOW {
            self.0 = Some(now);
        }
    }

    fn is_slow(self, now: Monotonic) -> bool {
        self.0.is_some_and(|at| now.since(at) < SLOW_FOR)
    }
}

/// How an attempt ended.
enum Attempt {
    /// The shard is ours.
    TakenOver(Box<ClaimedShard>),
    /// It has an owner, or is not for this node.
    Waits(Waits),
}

/// Takes the shard over as soon as that may be. Tries until it succeeds.
pub(super) async fn acquire(task: &mut ShardTask) -> ClaimedShard {
    let mut backoff = Backoff::new();
    let mut candidate = Candidate::default();
    loop {
        let wanted = task.duty.borrow_and_update().is_own();
        if std::mem::replace(&mut candidate.unwanted, !wanted) && wanted {
            candidate.soon_until = task.clock.monotonic().plus(SOON);
        }
        match attempt(task, &mut candidate).await {
            Ok(Attempt::TakenOver(claimed)) => return *claimed,
            Ok(Attempt::Waits(waits)) => {
                backoff.reset();
                task.events.send(ShardEvent::Waits(waits));
                let pause = match wanted {
                    true if task.clock.monotonic() < candidate.soon_until => OBSERVE_SOON_EVERY,
                    true => OBSERVE_EVERY,
                    false => OBSERVE_IDLE_EVERY,
                };
                tokio::select! {
                    biased;
                    changed = task.duty.changed() => {
                        if changed.is_err() {
                            // The shard was removed: the task is about to end.
                            std::future::pending::<()>().await;
                        }
                    }
                    () = tokio::time::sleep(until_tick(&*task.clock, pause)) => {}
                }
            }
            Err(error) => {
                // A failure of the server is logged for all of its shards at once.
                if !error.class.is_of_server() {
                    log_failure(task, &error.to_string(), &mut candidate.logged);
                }
                (candidate.watch, candidate.checked, candidate.ahead) = (None, false, None);
                task.events.send(ShardEvent::Unreachable(error));
                backoff.pause(&mut task.rng).await;
            }
        }
    }
}

/// Logs a failure once: the same line every second would hide everything else.
fn log_failure(task: &ShardTask, error: &str, logged: &mut String) {
    if *logged != error {
        let ShardTask { id, server, .. } = task;
        tracing::warn!(shard.id = id.0, error, "cannot take over shard {id} ({server}); retrying");
        *logged = error.to_owned();
    }
}

/// Observes the shard, and takes it over if that may be.
async fn attempt(task: &mut ShardTask, candidate: &mut Candidate) -> Result<Attempt, StoreError> {
    if !candidate.checked {
        watched(&task.events, task.shard.check()).await?;
        candidate.checked = true;
    }
    let began = task.clock.monotonic();
    let seen = watched(&task.events, task.shard.observe()).await?;
    task.events.send(ShardEvent::Answered);
    task.events.send(ShardEvent::Observed { topology: seen.topology_history.clone() });
    let now = task.clock.monotonic();
    candidate.speed.note(began, now);
    let owner = seen.address.clone();
    Watch::look(&mut candidate.watch, seen, now);
    // The owner is asked in time where this node may have to take the shard over soon.
    let lapsed = has_lapsed(task, candidate, now).await;
    let prepared = prepare(task, candidate, now);
    let Some(watch) = &candidate.watch else {
        return Ok(Attempt::Waits(Waits { owner, silent: false, prepared }));
    };
    let outage = match watch.decide(&node(task, candidate.speed), lapsed, now) {
        Decision::TakeOver { outage } => outage,
        Decision::Wait { silent } => return Ok(Attempt::Waits(Waits { owner, silent, prepared })),
    };
    let seen = watch.seen().clone();
    let room = task.room.take_overs.clone();
    // The room is never closed.
    let _room = room.acquire().await;
    if !task.duty.borrow().is_own() {
        return Ok(Attempt::Waits(Waits { owner, silent: false, prepared: false }));
    }
    // Acks found nobody while it waited for room, too.
    let outage = outage + task.clock.monotonic().since(now);
    match take_over(task, &seen, outage, &mut candidate.ahead).await? {
        Some(claimed) => Ok(Attempt::TakenOver(Box::new(claimed))),
        None => {
            candidate.watch = None;
            // Another candidate was faster. The next look shows who it is.
            Ok(Attempt::Waits(Waits::default()))
        }
    }
}

/// Reads the shard ahead, once it is to be handed over to this node. Returns whether its owner need not wait
/// for that any more.
fn prepare(task: &ShardTask, candidate: &mut Candidate, now: Monotonic) -> bool {
    let Candidate { watch: Some(watch), ahead, soon_until, unwanted, .. } = candidate else { return false };
    let seen = watch.seen();
    if *unwanted || ahead.as_ref().is_some_and(|reading| reading.is_stale(now)) {
        *ahead = None;
    }
    if *unwanted {
        return false;
    }
    let is_served = !seen.address.is_empty() && seen.address != task.address;
    if ahead.is_none() && is_served && now < *soon_until {
        *ahead = Some(PendingRead::begin(task, seen));
    }
    ahead.as_mut().is_none_or(|reading| reading.has_ended(now))
}

/// Takes the shard over, and loads it. `None`: it has changed since it was seen.
async fn take_over(
    task: &mut ShardTask,
    seen: &Observation,
    outage: Duration,
    ahead: &mut Option<PendingRead>,
) -> Result<Option<ClaimedShard>, StoreError> {
    let settings = watched(&task.events, task.shard.check()).await?;
    let claim = Claim {
        incarnation: Incarnation(task.rng.random()),
        address: task.address.clone(),
        lease: task.shard_lease,
    };
    let began = task.clock.monotonic();
    let taken = watched(&task.events, task.shard.take_over(&claim, seen)).await?;
    let Some(owned) = taken else { return Ok(None) };
    let (fence, reader) = (owned.fence, owned.reader.clone());
    let losses = losses(task.id, task.committed, owned.behind.unwrap_or(fence), fence);
    task.committed.note(LastCommit { epoch: fence.epoch, batch: fence.batch });
    let claimed = ClaimedShard::new(task, owned);
    let claimed_at = task.clock.monotonic();
    // On every path from here, the connections of this epoch end with `claimed`.
    task.served_last = Some(fence.epoch);
    // Only now: a claim that failed is made again.
    let ahead = ahead.take().map(|reading| reading.finish(seen, claimed_at));
    // A server that has lost commits may be behind what was read.
    let ahead = ahead.filter(|ahead| ahead.read.as_of() <= fence.batch);
    let Ahead { read, topics: expected } = ahead.unwrap_or_default();
    let read_ahead = read.topics().len();
    let snapshot = reader.load(read).await?;
    let loaded_at = task.clock.monotonic();
    let mut image = ImageBuilder::new(snapshot, expected, loaded_at);
    while image.step() {
        // Others of this thread have their turn.
        tokio::task::yield_now().await;
    }
    let (ShardTask { id, server, .. }, epoch) = (&*task, fence.epoch);
    let millis = |from: Monotonic, to: Monotonic| to.since(from).as_millis() as u64;
    tracing::info!(
        shard.id = id.0,
        epoch,
        read_ahead,
        claim_ms = millis(began, claimed_at),
        load_ms = millis(claimed_at, loaded_at),
        memory_ms = millis(loaded_at, task.clock.monotonic()),
        "shard {id} ({server}) taken over"
    );
    let taken_over = TakenShard {
        fence,
        image: image.finish(),
        reader,
        tasks: task.tasks.clone(),
        batch_bytes: settings.batch_bytes,
        concerns: settings.concerns(),
        losses,
        began,
        outage,
    };
    task.settings = settings;
    task.events.send(ShardEvent::TakenOver(Box::new(taken_over)));
    Ok(Some(claimed))
}

/// This node, as it looks at the shard.
fn node(task: &ShardTask, speed: Speed) -> CandidateNode<'_> {
    CandidateNode {
        address: &task.address,
        lease: task.shard_lease,
        wanted: task.duty.borrow().is_own(),
        served_last: task.served_last,
        server_slow: speed.is_slow(task.clock.monotonic()),
    }
}

/// Whether the owner has shown no sign of life for long enough, or denies to own the shard.
async fn has_lapsed(task: &ShardTask, candidate: &mut Candidate, now: Monotonic) -> bool {
    let Candidate { watch: Some(watch), speed, logged, .. } = candidate else { return false };
    loop {
        let node = node(task, *speed);
        match watch.lapse(&node, now) {
            Lapse::Known(lapsed) => return lapsed,
            Lapse::Probe => {
                let began = task.clock.monotonic();
                let commits = commits(task, logged).await;
                speed.note(began, task.clock.monotonic());
                if !commits {
                    return false;
                }
                watch.probed();
            }
            Lapse::Ask { epoch, incarnation } => {
                let server_slow = node.server_slow;
                let question = OwnerQuestion { shard: task.id, epoch, incarnation, server_slow };
                let answer = task.peers.ask(&watch.seen().address, question).await;
                watch.answered(answer, now);
            }
        }
    }
}

/// Whether the shard's server commits a row soon. Where it is slow, so are the owner's renewals.
async fn commits(task: &ShardTask, logged: &mut String) -> bool {
    let why = match tokio::time::timeout(PROBE_TIMEOUT, task.shard.probe()).await {
        Ok(Ok(_)) => return true,
        Ok(Err(error)) => {
            format!("the owner is silent, but the server does not commit for this node: {error}")
        }
        Err(_) => "the owner is silent, but the server takes over 500 ms to commit a row".to_owned(),
    };
    log_failure(task, &why, logged);
    false
}
