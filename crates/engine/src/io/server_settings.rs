//! Looks at the settings of an owned shard's server again and again: some can be changed at any time, and
//! then the server may lose what it has committed.

use std::{sync::Arc, time::Duration};

use forebay_store::{Settings, Shard};
use forebay_types::{Clock, ShardId};

use super::until_tick;
use crate::messages::{event::ShardEvents, shard::ShardEvent};

/// How often.
const EVERY: Duration = Duration::from_secs(60);

/// The parts that the watch works with.
pub(super) struct Watch {
    /// The shard's number.
    pub id: ShardId,
    /// Where the store keeps it.
    pub server: String,
    /// The shard.
    pub shard: Arc<dyn Shard>,
    /// Where changes go.
    pub events: ShardEvents,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The settings at the take-over.
    pub known: Settings,
}

/// Looks until the task ends with its owner. Each change is one line of the log.
pub(super) async fn watch(watch: Watch) {
    let Watch { id, server, shard, events, clock, known } = watch;
    let mut known = known.concerns();
    loop {
        tokio::time::sleep(until_tick(&*clock, EVERY)).await;
        // Whether the server answers is what renewals see.
        let Ok(settings) = shard.check().await else { continue };
        let found = settings.concerns();
        for concern in found.iter().filter(|concern| !known.contains(concern)) {
            tracing::warn!(shard.id = id.0, "a setting of shard {id} ({server}) was changed: {concern}");
        }
        for concern in known.iter().filter(|concern| !found.contains(concern)) {
            tracing::info!(shard.id = id.0, "no longer so of shard {id} ({server}): {concern}");
        }
        if found != known {
            events.send(ShardEvent::Concerns(found.clone()));
            known = found;
        }
    }
}
