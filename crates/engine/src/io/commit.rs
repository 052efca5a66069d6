//! Commits a batch: repeats it as often as it takes, and finds out its outcome where that is unknown. This
//! is the one place that retries.

use std::time::Duration;

use forebay_store::{Batch, CommitError, ErrorClass, Outcome, StoreError, Writer};
use forebay_types::Monotonic;

use super::{ShardTask, backoff::Backoff, bisect::bisect};
use crate::{
    messages::shard::{ShardEvent, Verdict},
    planted::{Bug, on},
};

/// After so many failures of one batch that are neither conflicts nor lost connections the shard is given up.
const FAILURES_MAX: u32 = 8;
/// The same for conflicts. Each may have waited for a lock for some seconds.
const CONFLICTS_MAX: u32 = 32;

/// After the shard was given up because a key was there already, such a row counts as one that can't be
/// stored for so long: it was not the fence that was behind.
const DUPLICATE_AGAIN: Duration = Duration::from_secs(60);

/// The next step after a commit that failed.
enum Failure {
    /// It is known how it ended.
    Ended(Verdict),
    /// The database refuses a row. Nobody hears that before the fence is read: an owner that was replaced may
    /// meet rows of the new one.
    Refused(StoreError),
    /// Rolled back by a conflict: do the same again. `why` is for people.
    Repeat { why: String },
    /// Ask the store for the outcome.
    Resolve(StoreError),
    /// The fence statement failed: ask the store for the outcome.
    FenceMoved { why: String },
}

/// How often a batch has failed so far.
struct Tries {
    backoff: Backoff,
    /// Neither by a conflict nor by a lost connection.
    failures: u32,
    /// By a conflict.
    conflicts: u32,
    /// At the fence.
    behind: u32,
}

/// Why the outcome of a batch is asked for.
enum Cause {
    /// A row is refused, and whether its key is there already.
    Refused { duplicate: bool },
    /// The disk is full.
    DiskFull,
    /// Something else.
    Other,
}

impl Tries {
    fn new() -> Self {
        Self { backoff: Backoff::new(), failures: 0, conflicts: 0, behind: 0 }
    }

    /// Counts a failure.
    fn count(&mut self, class: ErrorClass) {
        match class {
            // It ends when the database is back.
            ErrorClass::Disconnected => {}
            ErrorClass::Replay => self.conflicts += 1,
            _ => self.failures += 1,
        }
    }

    /// It was tried often enough.
    fn are_used_up(&self) -> bool {
        self.failures >= FAILURES_MAX || self.conflicts >= CONFLICTS_MAX
    }
}

/// Commits a batch. `atomic`: it must not be cut, so a row that can't be stored is found here.
pub(super) async fn commit(
    task: &mut ShardTask,
    writer: &mut dyn Writer,
    batch: &Batch,
    atomic: bool,
) -> Verdict {
    let mut tries = Tries::new();
    let mut sent = false;
    loop {
        let Err(error) = writer.commit(batch).await else {
            return Verdict::Committed { last: batch.number };
        };
        sent |= matches!(error, CommitError::Unknown(_));
        let (why, cause) = match failure(task, batch, error) {
            Failure::Ended(verdict) => return verdict,
            Failure::Refused(error) => {
                let duplicate = error.class == ErrorClass::Duplicate;
                (error.message, Cause::Refused { duplicate })
            }
            Failure::Repeat { why } => {
                tries.count(ErrorClass::Replay);
                if tries.are_used_up() {
                    return give_up(task, batch.number, why, sent);
                }
                tries.backoff.pause(&mut task.rng).await;
                continue;
            }
            Failure::Resolve(error) if error.class == ErrorClass::NotPrimary => {
                return unresolved(task, batch.number, error, sent);
            }
            Failure::Resolve(error) => {
                tries.count(error.class);
                let disk_full = error.class == ErrorClass::DiskFull;
                (error.message, if disk_full { Cause::DiskFull } else { Cause::Other })
            }
            Failure::FenceMoved { why } => {
                tries.behind += 1;
                (why, Cause::Other)
            }
        };
        tell(task, batch.number, &why, &cause);
        match resolve(task, writer, batch.number).await {
            Ok(Outcome::Committed) if on(Bug::ConfirmSkipped) => {
                return Verdict::Committed { last: batch.number };
            }
            Ok(Outcome::Committed) => return confirm(task, writer, batch).await,
            Ok(Outcome::NotCommitted) if tries.behind > 1 => {
                // The fence is ours and behind us: the server has lost what it had committed, so what is in
                // memory is wrong. The shard is loaded anew.
                log_lost_batches(task, batch.number);
                return Verdict::Foreign { sent };
            }
            Ok(Outcome::NotCommitted) => {
                if let Some(verdict) =
                    not_committed(task, writer, batch, why, cause, atomic, &mut tries).await
                {
                    return verdict;
                }
                // The old connection is dead and the fence has not moved: the COMMIT that was sent did not
                // happen.
                sent = false;
                tries.backoff.pause(&mut task.rng).await;
            }
            Ok(Outcome::Foreign) => return Verdict::Foreign { sent },
            Err(error) => return unresolved(task, batch.number, error, sent),
        }
    }
}

/// Says what happened, unless the event loop does: of a refused row, and of a full disk once for all
/// batches.
fn tell(task: &ShardTask, batch: u64, why: &str, cause: &Cause) {
    match cause {
        Cause::Refused { .. } => {}
        Cause::DiskFull => task.events.send(ShardEvent::NoRoom(why.to_owned())),
        Cause::Other => {
            log_failure(task, batch, why);
            task.events.send(ShardEvent::Trouble(why.to_owned()));
        }
    }
}

/// Decides on a batch that was not committed, and never will be as it was sent. `None`: it is sent again.
async fn not_committed(
    task: &mut ShardTask,
    writer: &mut dyn Writer,
    batch: &Batch,
    why: String,
    cause: Cause,
    atomic: bool,
    tries: &mut Tries,
) -> Option<Verdict> {
    match cause {
        _ if tries.are_used_up() => Some(give_up(task, batch.number, why, false)),
        Cause::DiskFull => Some(Verdict::DiskFull),
        Cause::Refused { duplicate } => {
            tries.count(ErrorClass::Poison);
            refused(task, writer, batch, why, duplicate, atomic).await
        }
        Cause::Other => None,
    }
}

/// Decides on a batch with a row that the database refuses, although the shard is ours. `None`: which row
/// that is could not be found.
async fn refused(
    task: &mut ShardTask,
    writer: &mut dyn Writer,
    batch: &Batch,
    why: String,
    duplicate: bool,
    atomic: bool,
) -> Option<Verdict> {
    if duplicate {
        let now = task.clock.monotonic();
        let again = task.duplicate_at.is_some_and(|at| now.since(at) < DUPLICATE_AGAIN);
        if !again {
            task.duplicate_at = Some(now);
            return Some(give_up_behind(task, batch.number, why));
        }
        return Some(Verdict::Unstorable { why, bad: Vec::new(), duplicate });
    }
    let bad = if atomic { bisect(writer, batch).await? } else { Vec::new() };
    Some(Verdict::Unstorable { why, bad, duplicate })
}

/// Decides the next step after an error.
fn failure(task: &ShardTask, batch: &Batch, error: CommitError) -> Failure {
    if matches!(error, CommitError::Unknown(_)) {
        metrics::counter!("forebay_unknown_outcomes_total", "shard" => task.id.to_string()).increment(1);
    }
    let error = match error {
        CommitError::RolledBack(error) => error,
        CommitError::FenceMoved => return Failure::FenceMoved { why: error.to_string() },
        CommitError::Unknown(_) if on(Bug::UnknownAsCommitted) => {
            return Failure::Ended(Verdict::Committed { last: batch.number });
        }
        CommitError::Unknown(error) => return Failure::Resolve(error),
    };
    match error.class {
        ErrorClass::Poison | ErrorClass::Duplicate if on(Bug::RefusedUnread) => {
            let (why, bad) = (error.message, Vec::new());
            Failure::Ended(Verdict::Unstorable { why, bad, duplicate: false })
        }
        ErrorClass::Poison | ErrorClass::Duplicate => Failure::Refused(error),
        ErrorClass::DiskFull => Failure::Ended(Verdict::DiskFull),
        ErrorClass::Replay => {
            metrics::counter!("forebay_replays_total", "shard" => task.id.to_string()).increment(1);
            task.conflicts.notify_one();
            let (id, number) = (task.id, batch.number);
            tracing::debug!(
                shard.id = id.0,
                %error,
                "a conflict rolled back batch {number} of shard {id}; repeating it"
            );
            Failure::Repeat { why: error.message }
        }
        ErrorClass::Unavailable
        | ErrorClass::NotPrimary
        | ErrorClass::Disconnected
        | ErrorClass::Schema
        | ErrorClass::NoConnection
        | ErrorClass::Unrecognized => Failure::Resolve(error),
    }
}

/// Asks until the store knows a batch's outcome. Fails where the store answers, and with errors that waiting
/// does not end.
async fn resolve(task: &mut ShardTask, writer: &mut dyn Writer, number: u64) -> Result<Outcome, StoreError> {
    let (mut tries, mut unknown_since) = (Tries::new(), None);
    loop {
        match writer.resolve(number).await {
            Ok(outcome) => {
                if let Some(since) = unknown_since {
                    log_known(task, number, since);
                }
                return Ok(outcome);
            }
            Err(error) => {
                if unknown_since.is_none() {
                    log_unknown(task, number, &error);
                    unknown_since = Some(task.clock.monotonic());
                }
                task.events.send(ShardEvent::Trouble(error.to_string()));
                // A store that is not available is asked for as long as it takes.
                if error.class != ErrorClass::Unavailable {
                    tries.count(error.class);
                }
                if tries.are_used_up() || error.class == ErrorClass::NotPrimary {
                    return Err(error);
                }
                tries.backoff.pause(&mut task.rng).await;
            }
        }
    }
}

/// A batch fails again and again, in a way that is not known to pass: the shard is taken over anew.
fn give_up(task: &ShardTask, batch: u64, why: String, sent: bool) -> Verdict {
    let ShardTask { id, server, .. } = task;
    metrics::counter!("forebay_shards_given_up_total").increment(1);
    tracing::error!(
        shard.id = id.0,
        batch,
        error = why,
        "batch {batch} of shard {id} ({server}) fails again and again; taking the shard over anew"
    );
    Verdict::GivenUp { why, sent }
}

/// A key of ours is there already, and the shard is ours: its fence is behind its rows, as after a restore of
/// that one row. The take-over raises it.
fn give_up_behind(task: &ShardTask, batch: u64, why: String) -> Verdict {
    let ShardTask { id, server, .. } = task;
    metrics::counter!("forebay_shards_given_up_total").increment(1);
    tracing::error!(
        shard.id = id.0,
        batch,
        error = why,
        "batch {batch} of shard {id} ({server}) gives out a number that a row has; taking the shard over anew"
    );
    Verdict::GivenUp { why, sent: false }
}

/// The store can't be asked for the outcome any more. Where the server takes no writes, or another one
/// answers, that is no failure of the batch: the shard is taken over anew through new connections.
fn unresolved(task: &ShardTask, batch: u64, error: StoreError, sent: bool) -> Verdict {
    if error.class != ErrorClass::NotPrimary {
        return give_up(task, batch, error.message, sent);
    }
    let (ShardTask { id, server, .. }, why) = (task, error.message);
    tracing::warn!(shard.id = id.0, why, "shard {id} ({server}) is lost: {why}; taking it over anew");
    Verdict::GivenUp { why, sent }
}

fn log_failure(task: &ShardTask, batch: u64, error: &str) {
    let ShardTask { id, server, .. } = task;
    tracing::warn!(
        shard.id = id.0,
        batch,
        error,
        "batch {batch} of shard {id} ({server}) was not committed at the first try; resolving its outcome"
    );
}

fn log_lost_batches(task: &ShardTask, batch: u64) {
    let ShardTask { id, server, .. } = task;
    tracing::error!(
        shard.id = id.0,
        batch,
        "shard {id} ({server}) has lost committed batches; loading it again; check durability settings"
    );
}

/// Logs an unknown outcome once, however often the database is asked.
fn log_unknown(task: &ShardTask, batch: u64, error: &StoreError) {
    let ShardTask { id, server, .. } = task;
    tracing::warn!(
        shard.id = id.0,
        batch,
        %error,
        "the outcome of batch {batch} of shard {id} ({server}) is unknown; asking until the database answers"
    );
}

fn log_known(task: &ShardTask, batch: u64, since: Monotonic) {
    let ShardTask { id, server, clock, .. } = task;
    let after = clock.monotonic().since(since);
    tracing::info!(
        shard.id = id.0,
        batch,
        "the outcome of batch {batch} of shard {id} ({server}) is known after {after:.1?}"
    );
}

/// A row that a read-back saw may not be on disk yet. It is answered only after a further fenced write.
async fn confirm(task: &mut ShardTask, writer: &mut dyn Writer, batch: &Batch) -> Verdict {
    let mut empty = Batch { number: batch.number + 1, marks: batch.marks, ..Batch::default() };
    let mut tries = Tries::new();
    loop {
        let why = match writer.commit(&empty).await {
            Ok(()) => return Verdict::Committed { last: empty.number },
            Err(error) => {
                if let CommitError::RolledBack(error) | CommitError::Unknown(error) = &error {
                    tries.count(error.class);
                }
                error.to_string()
            }
        };
        task.events.send(ShardEvent::Trouble(why.clone()));
        match resolve(task, writer, empty.number).await {
            _ if tries.are_used_up() => return give_up(task, batch.number, why, true),
            // This one may not be on disk either: it takes another.
            Ok(Outcome::Committed) => empty.number += 1,
            // A restart of the server may have undone the batch itself: ask again for the whole of it.
            Ok(Outcome::NotCommitted) => match resolve(task, writer, empty.number - 1).await {
                Ok(Outcome::Committed) => {}
                Ok(Outcome::NotCommitted) if empty.number == batch.number + 1 => {
                    return Box::pin(commit(task, writer, batch, false)).await;
                }
                Ok(Outcome::NotCommitted) => empty.number -= 1,
                Ok(Outcome::Foreign) => return Verdict::Foreign { sent: true },
                Err(error) => return unresolved(task, batch.number, error, true),
            },
            Ok(Outcome::Foreign) => return Verdict::Foreign { sent: true },
            Err(error) => return unresolved(task, batch.number, error, true),
        }
        tries.backoff.pause(&mut task.rng).await;
    }
}
