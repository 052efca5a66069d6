//! Renews the claim on a shard, and creates and drops generations of the dedupe table beside the batches.

use std::{sync::Arc, time::Duration};

use forebay_store::{ErrorClass, Heartbeat, Renewal, StoreError};
use forebay_types::{Clock, ShardId};
use tokio::sync::{mpsc::UnboundedReceiver, oneshot};

use super::{until_tick, watched};
use crate::{
    messages::{
        event::ShardEvents,
        pulse::LoopPulse,
        shard::{ShardEvent, ShardOrder},
    },
    planted::{Bug, on},
};

/// The parts that the renewals of one term work with.
pub(super) struct Renewals {
    /// The shard's number.
    pub id: ShardId,
    /// The connection.
    pub heartbeat: Box<dyn Heartbeat>,
    /// Where events go.
    pub events: ShardEvents,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Whether the event loop turns.
    pub pulse: LoopPulse,
    /// The pause between renewals. All shards of a node are renewed at the same times.
    pub every: Duration,
    /// Generations to be created and dropped.
    pub orders: UnboundedReceiver<ShardOrder>,
    /// Receives why the shard is lost, once it is.
    pub lost: oneshot::Sender<String>,
}

/// Renews until the shard is lost, or its task ends.
///
/// It does not renew while the event loop stands still: then nobody serves the shard, and others shall have
/// it. The loop is told of each renewal, so it has turned since the last one unless it stands.
pub(super) async fn renew(renewals: Renewals) {
    let Renewals { id, mut heartbeat, events, clock, pulse, every, mut orders, lost } = renewals;
    let mut turns = None;
    loop {
        if turns == Some(pulse.count()) && !on(Bug::HungOwnerRenews) {
            tracing::warn!(shard.id = id.0, "shard {id} is not renewed: the event loop stands still");
            while turns == Some(pulse.count()) {
                tokio::time::sleep(every).await;
            }
        }
        turns = Some(pulse.count());
        let began = clock.monotonic();
        match watched(&events, heartbeat.renew()).await {
            Ok(Renewal::Renewed { server_time }) => events.send(ShardEvent::Renewed { began, server_time }),
            Ok(Renewal::Lost) => {
                let _ = lost.send("another node owns the shard".to_owned());
                return;
            }
            Err(error) if error.class == ErrorClass::DiskFull => {
                events.send(ShardEvent::NoRoom(error.to_string()));
            }
            Err(error) if error.class == ErrorClass::NotPrimary => {
                events.send(ShardEvent::Trouble(error.to_string()));
                let _ = lost.send(error.to_string());
                return;
            }
            Err(error) => events.send(ShardEvent::RenewalFailed(error)),
        }
        let next = tokio::time::sleep(until_tick(&*clock, every));
        tokio::pin!(next);
        loop {
            tokio::select! {
                biased;
                () = &mut next => break,
                order = orders.recv() => match order {
                    Some(ShardOrder::Generations { live, create, drop, .. }) => {
                        let (live, error) = generations(heartbeat.as_mut(), live, create, drop).await;
                        events.send(ShardEvent::Generations { live, error });
                    }
                    Some(_) => {}
                    None => return,
                },
            }
        }
    }
}

/// Creates and drops generations, each as far as that succeeds. Returns those that exist then, and the last
/// failure.
async fn generations(
    heartbeat: &mut dyn Heartbeat,
    mut live: Vec<u64>,
    create: Vec<u64>,
    drop: Vec<u64>,
) -> (Vec<u64>, Option<StoreError>) {
    let mut failed = None;
    for number in create {
        match heartbeat.create_generation(number).await {
            Ok(()) => live.push(number),
            Err(error) => failed = Some(error),
        }
    }
    for number in drop {
        match heartbeat.drop_generation(number).await {
            Ok(()) => live.retain(|other| *other != number),
            Err(error) => failed = Some(error),
        }
    }
    live.sort_unstable();
    (live, failed)
}
