//! Commits a batch: repeats it as often as it takes, and finds out its outcome where that is unknown. This
//! is the one place that retries.

use forebay_store::{Batch, CommitError, ErrorClass, Outcome, StoreError, Writer};

use super::{ShardTask, backoff::Backoff, bisect::bisect};
use crate::{
    messages::shard::{ShardEvent, Verdict},
    planted::{Bug, on},
};

/// What to do about a commit that failed.
enum Failure {
    /// It is known how it ended.
    Ended(Verdict),
    /// Rolled back by a conflict: do the same again.
    Repeat,
    /// Ask the store for the outcome. `why` is for people.
    Resolve { why: String },
}

/// Commits a batch. `atomic`: it must not be cut, so a row that can't be stored is found here.
pub(super) async fn commit(
    task: &mut ShardTask,
    writer: &mut dyn Writer,
    batch: &Batch,
    atomic: bool,
) -> Verdict {
    let mut backoff = Backoff::new();
    let mut sent = false;
    let mut behind = 0;
    loop {
        let Err(error) = writer.commit(batch).await else {
            return Verdict::Committed { last: batch.number };
        };
        sent |= matches!(error, CommitError::Unknown(_));
        behind += u32::from(matches!(error, CommitError::FenceMoved));
        let why = match failure(task, writer, batch, error, atomic).await {
            Failure::Ended(verdict) => return verdict,
            Failure::Repeat => {
                backoff.pause(&mut task.rng).await;
                continue;
            }
            Failure::Resolve { why } => why,
        };
        log_failure(task, batch.number, &why);
        task.events.send(ShardEvent::Trouble(why));
        match resolve(task, writer, batch.number).await {
            Outcome::Committed => return confirm(task, writer, batch).await,
            Outcome::NotCommitted if behind > 1 => {
                // The fence is ours and behind us: the server has lost what it had committed, so what is in
                // memory is wrong. The shard is loaded anew.
                log_lost_batches(task, batch.number);
                return Verdict::Foreign { sent };
            }
            Outcome::NotCommitted => {
                // The old connection is dead and the fence has not moved: the COMMIT that was sent did not
                // happen.
                sent = false;
                backoff.pause(&mut task.rng).await;
            }
            Outcome::Foreign => return Verdict::Foreign { sent },
        }
    }
}

/// What to do about an error.
async fn failure(
    task: &ShardTask,
    writer: &mut dyn Writer,
    batch: &Batch,
    error: CommitError,
    atomic: bool,
) -> Failure {
    let error = match error {
        CommitError::RolledBack(error) => error,
        CommitError::FenceMoved => return Failure::Resolve { why: error.to_string() },
        CommitError::Unknown(_) if on(Bug::UnknownAsCommitted) => {
            return Failure::Ended(Verdict::Committed { last: batch.number });
        }
        CommitError::Unknown(error) => return Failure::Resolve { why: error.to_string() },
    };
    match error.class {
        ErrorClass::Poison if atomic => match bisect(writer, batch).await {
            Some(bad) => Failure::Ended(Verdict::Unstorable { why: error.message, bad }),
            None => Failure::Resolve { why: error.message },
        },
        ErrorClass::Poison => Failure::Ended(Verdict::Unstorable { why: error.message, bad: Vec::new() }),
        ErrorClass::DiskFull => Failure::Ended(Verdict::DiskFull),
        ErrorClass::Replay => {
            let (id, number) = (task.id, batch.number);
            tracing::debug!(
                shard.id = id.0,
                %error,
                "a conflict rolled back batch {number} of shard {id}; repeating it"
            );
            Failure::Repeat
        }
        ErrorClass::Unavailable | ErrorClass::Disconnected | ErrorClass::Schema => {
            Failure::Resolve { why: error.to_string() }
        }
    }
}

/// Asks until the store knows a batch's outcome.
async fn resolve(task: &mut ShardTask, writer: &mut dyn Writer, number: u64) -> Outcome {
    let mut backoff = Backoff::new();
    loop {
        match writer.resolve(number).await {
            Ok(outcome) => return outcome,
            Err(error) => {
                still_unknown(task, number, &error);
                backoff.pause(&mut task.rng).await;
            }
        }
    }
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

fn still_unknown(task: &ShardTask, batch: u64, error: &StoreError) {
    let ShardTask { id, server, .. } = task;
    tracing::warn!(
        shard.id = id.0,
        batch,
        %error,
        "the outcome of batch {batch} of shard {id} ({server}) is still unknown; asking again"
    );
    task.events.send(ShardEvent::Trouble(error.to_string()));
}

/// A row that a read-back saw may not be on disk yet. It is answered only after a further fenced write.
async fn confirm(task: &mut ShardTask, writer: &mut dyn Writer, batch: &Batch) -> Verdict {
    let mut empty = Batch { number: batch.number + 1, marks: batch.marks, ..Batch::default() };
    let mut backoff = Backoff::new();
    loop {
        match writer.commit(&empty).await {
            Ok(()) => return Verdict::Committed { last: empty.number },
            Err(error) => task.events.send(ShardEvent::Trouble(error.to_string())),
        }
        match resolve(task, writer, empty.number).await {
            // This one may not be on disk either: it takes another.
            Outcome::Committed => empty.number += 1,
            // A restart of the server may have undone the batch itself: ask again for the whole of it.
            Outcome::NotCommitted => match resolve(task, writer, empty.number - 1).await {
                Outcome::Committed => {}
                Outcome::NotCommitted if empty.number == batch.number + 1 => {
                    return Box::pin(commit(task, writer, batch, false)).await;
                }
                Outcome::NotCommitted => empty.number -= 1,
                Outcome::Foreign => return Verdict::Foreign { sent: true },
            },
            Outcome::Foreign => return Verdict::Foreign { sent: true },
        }
        backoff.pause(&mut task.rng).await;
    }
}
