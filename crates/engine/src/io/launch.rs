//! Starts the tasks of shards, when the engine starts and when a shard is added to it, and those that ask
//! other nodes.

use std::{sync::Arc, time::Duration};

use forebay_store::Shard;
use forebay_types::{Clock, Namespace, Receipt, ShardId};
use tokio::sync::{
    mpsc::{UnboundedSender, unbounded_channel},
    watch,
};

use super::{ShardTask, backoff, found::LastCommit, orders::Orders, take_over_room::TakeOverRoom, task};
use crate::{
    api::{Duty, FetchCall, KeyQuestion, Peers, TaskName, Tasks},
    index::ShardIndex,
    messages::{
        event::{Event, ShardEvents},
        pulse::LoopPulse,
        shard::{ShardEvent, ShardOrder},
    },
};

/// The parts that the tasks of all shards work with.
pub(crate) struct Launcher {
    /// Where this node answers, `host:port`.
    pub address: String,
    /// The way to other nodes.
    pub peers: Arc<dyn Peers>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where the tasks run.
    pub tasks: Arc<dyn Tasks>,
    /// Whether the event loop turns.
    pub pulse: LoopPulse,
    /// How long a shard stays its owner's without a renewal.
    pub shard_lease: Duration,
    /// The node's duty for a shard at first.
    pub duty: Duty,
    /// The event loop's inbox.
    pub events: UnboundedSender<Event>,
    /// Room for take-overs.
    pub take_overs: TakeOverRoom,
}

/// An answer of another node that takes longer is none.
const FIND_KEYS_TIMEOUT: Duration = Duration::from_secs(1);

/// At-most-once items that are not out of their shards within this time are lost.
const CONSUME_TIMEOUT: Duration = Duration::from_secs(2);

/// The ways to a task. It ends once they are dropped.
pub(crate) struct TaskHandle {
    /// Its inbox.
    pub orders: UnboundedSender<ShardOrder>,
    /// The node's duty for the shard, as the task sees it.
    pub duty: watch::Sender<Duty>,
}

impl Launcher {
    /// Starts the task of a shard. `seed` makes everything random about it.
    pub fn launch(&self, index: ShardIndex, id: ShardId, shard: Arc<dyn Shard>, seed: u64) -> TaskHandle {
        let (shard_orders, orders) = unbounded_channel();
        let (duty_sender, duty) = watch::channel(self.duty.clone());
        let shard_task = ShardTask {
            settings: forebay_store::Settings::default(),
            room: self.take_overs.of(&shard.server()),
            conflicts: Arc::default(),
            served_last: None,
            duplicate_at: None,
            committed: LastCommit::default(),
            duty,
            pulse: self.pulse.clone(),
            id,
            server: shard.server(),
            shard,
            address: self.address.clone(),
            peers: self.peers.clone(),
            clock: self.clock.clone(),
            tasks: self.tasks.clone(),
            shard_lease: self.shard_lease,
            rng: backoff::generator(seed, id),
            events: ShardEvents { shard: index, term: 0, events: self.events.clone() },
        };
        self.tasks.start(TaskName::Shard(id), Box::pin(task::run(shard_task, Orders::from(orders))));
        TaskHandle { orders: shard_orders, duty: duty_sender }
    }

    /// Leases items at the node at an address, for the fetch `fetch`.
    pub fn fetch(&self, fetch: u64, address: String, call: FetchCall) {
        let (peers, events, namespace) =
            (self.peers.clone(), self.events.clone(), call.name.namespace.clone());
        let fetching = async move {
            let answer = peers.lease_items(&address, call).await;
            let _ = events.send(Event::Fetched { fetch, address, namespace, answer });
        };
        self.tasks.start(TaskName::Fetch, Box::pin(fetching));
    }

    /// Takes at-most-once items out of their shards at the node at an address.
    pub fn consume(&self, fetch: u64, address: String, namespace: Namespace, receipts: Vec<Receipt>) {
        let (peers, events, count) = (self.peers.clone(), self.events.clone(), receipts.len());
        let consuming = async move {
            let answer = peers.consume_items(&address, namespace.clone(), receipts);
            let consumed = tokio::time::timeout(CONSUME_TIMEOUT, answer).await;
            let consumed = consumed.unwrap_or_else(|_| vec![false; count]);
            let _ = events.send(Event::Consumed { fetch, namespace, consumed });
        };
        self.tasks.start(TaskName::Fetch, Box::pin(consuming));
    }

    /// Returns deliveries of items of the node at an address that certainly reached nobody.
    pub fn return_items(&self, address: String, namespace: Namespace, receipts: Vec<Receipt>) {
        let peers = self.peers.clone();
        let returning = async move { peers.return_items(&address, namespace, receipts).await };
        self.tasks.start(TaskName::Fetch, Box::pin(returning));
    }

    /// Asks the node at an address for keys, by the read `read`. What it says is reported to a shard.
    pub fn find_keys(&self, events: ShardEvents, read: u64, address: String, question: KeyQuestion) {
        let peers = self.peers.clone();
        let asking = async move {
            let answer = peers.find_keys(&address, question);
            let hits = tokio::time::timeout(FIND_KEYS_TIMEOUT, answer).await.ok().flatten();
            events.send(ShardEvent::KeysFoundElsewhere { read, hits });
        };
        self.tasks.start(TaskName::Read, Box::pin(asking));
    }
}
