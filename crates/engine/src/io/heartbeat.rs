//! Renews the claim on a shard, and creates and drops generations of the dedupe table beside the batches.

use std::{sync::Arc, time::Duration};

use forebay_store::{Heartbeat, Renewal, StoreError};
use forebay_types::Clock;
use tokio::sync::{mpsc::UnboundedReceiver, oneshot};

use crate::messages::{
    event::ShardEvents,
    shard::{ShardEvent, ShardOrder},
};

/// What the renewals of one term work with.
pub(super) struct Renewals {
    /// The connection.
    pub heartbeat: Box<dyn Heartbeat>,
    /// Where events go.
    pub events: ShardEvents,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The pause between renewals.
    pub every: Duration,
    /// Generations to be created and dropped.
    pub orders: UnboundedReceiver<ShardOrder>,
    /// Receives a message once another node owns the shard.
    pub lost: oneshot::Sender<()>,
}

/// Renews until the shard is lost, or its task ends.
pub(super) async fn renew(renewals: Renewals) {
    let Renewals { mut heartbeat, events, clock, every, mut orders, lost } = renewals;
    loop {
        let began = clock.monotonic();
        match heartbeat.renew().await {
            Ok(Renewal::Renewed { server_time }) => events.send(ShardEvent::Renewed { began, server_time }),
            Ok(Renewal::Lost) => {
                let _ = lost.send(());
                return;
            }
            Err(error) => events.send(ShardEvent::Trouble(error.to_string())),
        }
        let next = tokio::time::sleep(every);
        tokio::pin!(next);
        loop {
            tokio::select! {
                biased;
                () = &mut next => break,
                order = orders.recv() => match order {
                    Some(ShardOrder::Generations { live, create, drop, .. }) => {
                        let live = generations(heartbeat.as_mut(), live, create, drop).await;
                        events.send(ShardEvent::Generations { live });
                    }
                    Some(_) => {}
                    None => return,
                },
            }
        }
    }
}

/// Creates and drops generations. Returns those that exist then.
async fn generations(
    heartbeat: &mut dyn Heartbeat,
    mut live: Vec<u64>,
    create: Vec<u64>,
    drop: Vec<u64>,
) -> Result<Vec<u64>, StoreError> {
    for number in create {
        heartbeat.create_generation(number).await?;
        live.push(number);
    }
    for number in drop {
        heartbeat.drop_generation(number).await?;
        live.retain(|other| *other != number);
    }
    live.sort_unstable();
    Ok(live)
}
