//! A shard's task: it takes the shard over, serves it until it is lost, and begins again, until it is told to
//! release it.

use forebay_store::{Batch, ShardConnections, Writer};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, unbounded_channel},
        oneshot,
    },
    task::AbortHandle,
};

use super::{
    ShardTask,
    commit::commit,
    heartbeat::{Renewals, renew},
    noticed, server_settings,
    take_over::acquire,
};
use crate::{
    api::TaskName,
    messages::shard::{SLOW_COMMIT, ShardEvent, ShardOrder, Verdict},
};

/// Why a shard is no longer served.
enum End {
    /// It was given up, or the event loop is gone.
    Released,
    /// Another node owns it, or it is taken over anew.
    Lost,
}

/// Ends a task with its owner, wherever that one ends.
struct EndedOnDrop(AbortHandle);

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs the task until the shard is released.
pub(crate) async fn run(mut task: ShardTask, mut orders: UnboundedReceiver<ShardOrder>) {
    loop {
        task.events.term += 1;
        let owned = tokio::select! {
            biased;
            owned = acquire(&mut task) => owned,
            () = wait_for_release(&mut orders) => break,
        };
        let epoch = owned.fence.epoch;
        if let End::Released = serve(&mut task, owned, &mut orders).await {
            break;
        }
        task.served_last = Some(epoch);
    }
    task.events.send(ShardEvent::Released);
}

/// Waits until the shard is to be given up, or the event loop is gone. Other orders are of an earlier term.
async fn wait_for_release(orders: &mut UnboundedReceiver<ShardOrder>) {
    while let Some(order) = orders.recv().await {
        if matches!(order, ShardOrder::Release) {
            return;
        }
    }
}

/// Commits a batch, and reports once if that is slow. The task itself looks at the clock: where the event
/// loop stalls, that says nothing of the shard.
async fn commit_timed(task: &mut ShardTask, writer: &mut dyn Writer, batch: &Batch, atomic: bool) -> Verdict {
    let events = task.events.clone();
    noticed(&events, SLOW_COMMIT, ShardEvent::Slow, commit(task, writer, batch, atomic)).await
}

async fn release(task: &ShardTask, writer: &mut dyn Writer) {
    if let Err(error) = writer.release().await {
        let ShardTask { id, server, shard_lease, .. } = task;
        tracing::warn!(
            shard.id = id.0,
            %error,
            "cannot release shard {id} ({server}); it can be taken over in {shard_lease:?}"
        );
    }
}

/// Serves a shard until it is released or lost.
async fn serve(
    task: &mut ShardTask,
    owned: ShardConnections,
    orders: &mut UnboundedReceiver<ShardOrder>,
) -> End {
    let ShardConnections { mut writer, heartbeat, reader: _, .. } = owned;
    let (generations, generation_orders) = unbounded_channel();
    let (lost, mut claim_lost) = oneshot::channel();
    let renewals = Renewals {
        heartbeat,
        events: task.events.clone(),
        clock: task.clock.clone(),
        every: task.shard_lease / 4,
        orders: generation_orders,
        lost,
    };
    let name = TaskName::Renewals(task.id);
    let _renewals = EndedOnDrop(task.tasks.start(name, Box::pin(renew(renewals))));
    let watch = server_settings::Watch {
        id: task.id,
        server: task.server.clone(),
        shard: task.shard.clone(),
        events: task.events.clone(),
        known: task.settings.clone(),
    };
    let name = TaskName::ServerSettings(task.id);
    let _settings = EndedOnDrop(task.tasks.start(name, Box::pin(server_settings::watch(watch))));
    loop {
        let order = tokio::select! {
            biased;
            order = orders.recv() => order,
            why = &mut claim_lost => {
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
                | ShardOrder::TakeAnew { term },
            ) if term != task.events.term => {}
            Some(ShardOrder::Commit { batch, atomic, .. }) => {
                let began = task.clock.monotonic();
                let verdict = commit_timed(task, writer.as_mut(), &batch, atomic).await;
                let took = task.clock.monotonic().since(began);
                let lost = matches!(verdict, Verdict::Foreign { .. } | Verdict::GivenUp { .. });
                task.events.send(ShardEvent::Resolved { verdict, took });
                if lost {
                    return End::Lost;
                }
            }
            Some(order @ ShardOrder::Generations { .. }) => {
                let _ = generations.send(order);
            }
            Some(ShardOrder::TakeAnew { .. }) => {
                task.events.send(ShardEvent::ClaimLost);
                return End::Lost;
            }
            Some(ShardOrder::Release) => {
                release(task, writer.as_mut()).await;
                return End::Released;
            }
            None => return End::Released,
        }
    }
}
