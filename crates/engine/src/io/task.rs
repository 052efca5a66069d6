//! A shard's task: it takes the shard over if that is the node's duty, serves it until it is lost or given
//! up, and begins again, until it is told to stop, or the shard is removed.

use std::{pin::pin, sync::Arc, time::Duration};

use forebay_store::{Batch, ProbeOutcome, Shard, Writer};
use tokio::sync::{Notify, watch};

use super::{
    ShardTask,
    claimed::{ClaimedShard, watch_settings},
    commit::commit,
    found::LastCommit,
    orders::Orders,
    take_over::{PROBE_TIMEOUT, acquire},
};
use crate::{
    api::Duty,
    messages::shard::{SLOW_COMMIT, ShardEvent, ShardOrder, Verdict},
};

/// How long a release may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a node has the server of a batch that gets no answer commit a row. Twice that is longer than a
/// statement may take, and once is longer than a connection may take to open. So a batch is tried again on
/// another connection before, where its own has died, and after its server was away.
const PROBE_EVERY: Duration = Duration::from_secs(6);

/// A batch that gets no answer while its server commits so many rows for this node is stuck.
const PROBES: u32 = 2;

/// How long a shard whose batch was stuck is left to other nodes.
const LEFT_TO_OTHERS: Duration = Duration::from_secs(5);

/// Why a shard is no longer served.
enum End {
    /// The engine stops, the shard was removed, or the event loop is gone.
    Stopped,
    /// It was given up as asked.
    Released,
    /// Another node owns it, or it is taken over anew.
    Lost,
    /// Its batch was stuck: other nodes may take it.
    Stuck,
}

/// Runs the task until the engine stops, or the shard is removed.
pub(crate) async fn run(mut task: ShardTask, mut orders: Orders) {
    loop {
        task.events.term += 1;
        let claimed = tokio::select! {
            biased;
            claimed = acquire(&mut task) => claimed,
            () = orders.stop() => break,
        };
        let epoch = claimed.epoch;
        match serve(&mut task, claimed, &mut orders).await {
            End::Stopped => break,
            End::Released => {
                task.served_last = None;
                task.events.send(ShardEvent::Released);
            }
            End::Lost => task.served_last = Some(epoch),
            End::Stuck => {
                task.served_last = Some(epoch);
                tokio::select! {
                    biased;
                    () = orders.stop() => break,
                    () = tokio::time::sleep(LEFT_TO_OTHERS) => {}
                }
            }
        }
    }
    task.events.send(ShardEvent::Stopped);
}

/// Commits a batch, and reports if that is slow, and then that it is overdue. The task itself looks at the
/// clock: where the event loop stalls, that says nothing of the shard.
async fn commit_timed(task: &mut ShardTask, writer: &mut dyn Writer, batch: &Batch, atomic: bool) -> Verdict {
    let events = task.events.clone();
    let mut commit = pin!(commit(task, writer, batch, atomic));
    let mut is_slow = false;
    loop {
        tokio::select! {
            biased;
            verdict = &mut commit => return verdict,
            () = tokio::time::sleep(SLOW_COMMIT) => {
                events.send(if is_slow { ShardEvent::Overdue } else { ShardEvent::Slow });
                is_slow = true;
            }
        }
    }
}

/// Returns once a batch has had no answer for too long, although the shard's server commits for this node. So
/// it is not the server that is slow or away: it is this node's connection. A batch that meets conflicts is
/// not stuck: it waits for locks, and would at any node.
async fn stuck(shard: Arc<dyn Shard>, conflicts: Arc<Notify>) {
    let mut committed = 0;
    while committed < PROBES {
        let conflict = tokio::time::timeout(PROBE_EVERY, conflicts.notified()).await.is_ok();
        let probe = async || tokio::time::timeout(PROBE_TIMEOUT, shard.probe()).await;
        let commits = !conflict && matches!(probe().await, Ok(Ok(ProbeOutcome::Committed)));
        committed = if commits { committed + 1 } else { 0 };
    }
}

/// Returns once the shard was removed, or the event loop is gone: nobody waits for a commit any more, and
/// its server may never answer again.
async fn removed(mut duty: watch::Receiver<Duty>) {
    while duty.changed().await.is_ok() {}
}

async fn release(task: &ShardTask, writer: &mut dyn Writer, successor: &str) {
    // Its claim is renewed meanwhile, so that nobody could take the shard.
    let released = tokio::time::timeout(RELEASE_TIMEOUT, writer.release(successor)).await;
    let why = match released {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {RELEASE_TIMEOUT:?}"),
    };
    let ShardTask { id, server, shard_lease, .. } = task;
    tracing::warn!(
        shard.id = id.0,
        error = why,
        "cannot release shard {id} ({server}); it can be taken over in {shard_lease:?}"
    );
}

fn log_stuck(task: &ShardTask, batch: u64) {
    let ShardTask { id, server, .. } = task;
    metrics::counter!("forebay_shards_given_up_total").increment(1);
    tracing::error!(
        shard.id = id.0,
        batch,
        "batch {batch} of shard {id} ({server}) is stuck, and its server commits; leaving the shard to others"
    );
}

/// Notes what became of a batch. Returns why the shard is not served any more, if it is not.
fn note(task: &mut ShardTask, epoch: u64, verdict: &Verdict) -> Option<End> {
    match verdict {
        Verdict::Committed { last } => {
            task.committed.note(LastCommit { epoch, batch: *last });
            None
        }
        Verdict::Foreign { .. } | Verdict::GivenUp { .. } => Some(End::Lost),
        Verdict::Stuck => Some(End::Stuck),
        Verdict::Unstorable { .. } | Verdict::DiskFull => None,
    }
}

/// Serves a shard until it is released or lost.
async fn serve(task: &mut ShardTask, claimed: ClaimedShard, orders: &mut Orders) -> End {
    let _settings = watch_settings(task);
    let ClaimedShard { epoch, mut writer, generations, mut lost, .. } = claimed;
    loop {
        let order = tokio::select! {
            biased;
            order = orders.next() => order,
            why = &mut lost => {
                let (ShardTask { id, server, .. }, why) = (&*task, why.unwrap_or_default());
                tracing::warn!(shard.id = id.0, why, "shard {id} ({server}) is lost: {why}");
                task.events.send(ShardEvent::ClaimLost);
                return End::Lost;
            }
        };
        match order {
            // Meant for an earlier term, whose memory the event loop has dropped.
            Some(
                ShardOrder::Commit { term, .. }
                | ShardOrder::Generations { term, .. }
                | ShardOrder::TakeAnew { term }
                | ShardOrder::Dropped { term }
                | ShardOrder::Release { term, .. },
            ) if term != task.events.term => {}
            Some(ShardOrder::Commit { batch, atomic, .. }) => {
                let (began, term) = (task.clock.monotonic(), task.events.term);
                let (duty, stuck) = (task.duty.clone(), stuck(task.shard.clone(), task.conflicts.clone()));
                let verdict = tokio::select! {
                    biased;
                    verdict = commit_timed(task, writer.as_mut(), &batch, atomic) => verdict,
                    () = removed(duty) => return End::Stopped,
                    // Rows of the batch at the server, if there are any, end with its connection, which the
                    // next owner of the shard kills. Repeated here, the batch could hold the fence for long.
                    () = orders.dropped(term) => return End::Lost,
                    () = stuck => {
                        log_stuck(task, batch.number);
                        Verdict::Stuck
                    }
                };
                let took = task.clock.monotonic().since(began);
                let end = note(task, epoch, &verdict);
                task.events.send(ShardEvent::Resolved { verdict, took });
                if let Some(end) = end {
                    return end;
                }
            }
            Some(order @ ShardOrder::Generations { .. }) => {
                let _ = generations.send(order);
            }
            Some(ShardOrder::Dropped { .. }) => return End::Lost,
            Some(ShardOrder::TakeAnew { .. }) => {
                task.events.send(ShardEvent::ClaimLost);
                return End::Lost;
            }
            Some(ShardOrder::Release { successor, .. }) => {
                release(task, writer.as_mut(), &successor).await;
                return End::Released;
            }
            Some(ShardOrder::Stop) => {
                release(task, writer.as_mut(), "").await;
                return End::Stopped;
            }
            None => return End::Stopped,
        }
    }
}
