//! A shard that this task has taken over: its writing connection, and the tasks that run beside its batches.

use forebay_store::{ShardConnections, Writer};
use tokio::{
    sync::{
        mpsc::{UnboundedSender, unbounded_channel},
        oneshot,
    },
    task::AbortHandle,
};

use super::{
    ShardTask,
    heartbeat::{Renewals, renew},
    server_settings,
};
use crate::{api::TaskName, messages::shard::ShardOrder};

/// Ends a task with its owner, wherever that one ends.
pub(super) struct EndedOnDrop(pub AbortHandle);

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A shard that was taken over. Its claim is renewed as long as this lives.
pub(super) struct ClaimedShard {
    /// The epoch of the take-over.
    pub epoch: u64,
    /// Writes batches.
    pub writer: Box<dyn Writer>,
    /// The inbox of the renewals' task, which creates and drops generations too.
    pub generations: UnboundedSender<ShardOrder>,
    /// Tells why the shard is lost, once it is.
    pub lost: oneshot::Receiver<String>,
    /// Renews the claim.
    _renewals: EndedOnDrop,
}

impl ClaimedShard {
    /// Begins to renew the claim. A load may take longer than a shard lease, so it comes after this.
    pub fn new(task: &ShardTask, owned: ShardConnections) -> Self {
        let ShardConnections { fence, writer, heartbeat, behind: _, reader: _ } = owned;
        let (generations, orders) = unbounded_channel();
        let (lost_sender, lost) = oneshot::channel();
        let renewals = Renewals {
            id: task.id,
            heartbeat,
            events: task.events.clone(),
            clock: task.clock.clone(),
            pulse: task.pulse.clone(),
            every: task.shard_lease / 4,
            orders,
            lost: lost_sender,
        };
        let name = TaskName::Renewals(task.id);
        let renewals = EndedOnDrop(task.tasks.start(name, Box::pin(renew(renewals))));
        Self { epoch: fence.epoch, writer, generations, lost, _renewals: renewals }
    }
}

/// Watches the settings of the shard's server, as long as what it returns lives.
pub(super) fn watch_settings(task: &ShardTask) -> EndedOnDrop {
    let watch = server_settings::Watch {
        id: task.id,
        server: task.server.clone(),
        shard: task.shard.clone(),
        events: task.events.clone(),
        clock: task.clock.clone(),
        known: task.settings.clone(),
    };
    let name = TaskName::ServerSettings(task.id);
    EndedOnDrop(task.tasks.start(name, Box::pin(server_settings::watch(watch))))
}
