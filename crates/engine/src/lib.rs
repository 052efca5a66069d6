//! The queue itself, in process: no protobuf, no SQL, and time and randomness as arguments.
//!
//! `docs/ARCHITECTURE.md` walks through every path.

mod api;

pub use api::{
    ActiveTopic, ActiveTopics, ActiveTopicsCall, Delivered, Demand, DequeueCall, EnqueueCall, Enqueued,
    ExtendOf, Extended, NackAction, NackOf, NewItem, Peers, Schedule, Settings, Settled, ShardStatus, Status,
    SweepStatus, TopicPosition, TopicStatus,
};

use std::sync::Arc;

use forebay_store::Shard;
use forebay_types::{Clock, Namespace, Receipt, Refusal, ShardId};

/// A running engine. Cheap to clone; every clone reaches the same one.
#[derive(Clone)]
pub struct Engine {}

#[expect(unused_variables, reason = "the engine is being written")]
impl Engine {
    /// Starts the engine over these shards; it takes them over in the background. `address` is where this
    /// process answers, `host:port`; `seed` makes everything random about it.
    pub fn start(
        settings: Settings,
        address: String,
        shards: Vec<(ShardId, Arc<dyn Shard>)>,
        clock: Arc<dyn Clock>,
        peers: Arc<dyn Peers>,
        seed: u64,
    ) -> Self {
        todo!()
    }

    /// Stores items. The outer error refuses the whole call: nothing of it happened.
    pub async fn enqueue(&self, call: EnqueueCall) -> Result<Vec<Result<Enqueued, Refusal>>, Refusal> {
        todo!()
    }

    /// Leases items, waiting for them if asked to. What was leased for a caller that goes away is released.
    pub async fn dequeue(&self, call: DequeueCall) -> Result<Vec<Delivered>, Refusal> {
        todo!()
    }

    /// Ends deliveries.
    pub async fn ack(&self, namespace: Namespace, acks: Vec<Receipt>) -> Result<Vec<Settled>, Refusal> {
        todo!()
    }

    /// Gives items back.
    pub async fn nack(&self, namespace: Namespace, nacks: Vec<NackOf>) -> Result<Vec<Settled>, Refusal> {
        todo!()
    }

    /// Moves the ends of leases.
    pub async fn extend_lease(
        &self,
        namespace: Namespace,
        extensions: Vec<ExtendOf>,
    ) -> Result<Vec<Extended>, Refusal> {
        todo!()
    }

    /// Lists topics that have something to deliver.
    pub async fn active_topics(&self, call: ActiveTopicsCall) -> Result<ActiveTopics, Refusal> {
        todo!()
    }

    /// What operators see. `None` once the engine has stopped.
    pub async fn status(&self) -> Option<Status> {
        todo!()
    }

    /// Waits until every shard that can be reached is owned. Returns at once if that is so.
    pub async fn ready(&self) {
        todo!()
    }

    /// Takes no more work, answers long polls empty, commits what was accepted, answers it, gives the shards
    /// up, and stops. Returns when that is done.
    pub async fn stop(&self) {
        todo!()
    }
}
