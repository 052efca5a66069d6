//! Enqueue: items are stored in their shards.

use std::sync::OnceLock;

use forebay_engine::{Avoid, Engine, EnqueueCall, EnqueueOutcome, MemberPlaces, NewItem, Notice};
use forebay_types::{Namespace, Refusal, ShardId};

use crate::{
    links::{Answers, Links},
    route::Verb,
};

/// The answer to an enqueue.
#[derive(Debug, Default)]
pub struct EnqueueAnswer {
    /// One result an item.
    pub results: Vec<Result<EnqueueOutcome, Refusal>>,
    /// The shard that this node would take for more items of the first topic, if the caller may name one.
    pub next_shard: Option<ShardId>,
}

/// An enqueue call, without its items.
pub(crate) struct Enqueue<'a> {
    /// This node's engine.
    pub engine: &'a Engine,
    /// The other nodes.
    pub links: &'a dyn Links,
    /// The tenant.
    pub namespace: Namespace,
    /// Makes a repeated call harmless.
    pub request_id: Option<String>,
    /// The shard that the call names.
    pub shard: Option<ShardId>,
    /// The shard that the engine would take next.
    pub next_shard: OnceLock<ShardId>,
}

impl Enqueue<'_> {
    fn call(&self, items: Vec<NewItem>, only: Option<ShardId>, avoid: Avoid) -> EnqueueCall {
        let (namespace, request_id) = (self.namespace.clone(), self.request_id.clone());
        EnqueueCall { namespace, items, request_id, shard: self.shard, only, avoid }
    }
}

impl Verb for Enqueue<'_> {
    type Member = NewItem;
    type Answer = EnqueueOutcome;

    async fn here(
        &self,
        items: Vec<NewItem>,
        avoid: Avoid,
        notice: Notice,
    ) -> Result<Vec<Result<EnqueueOutcome, Refusal>>, Refusal> {
        self.engine.enqueue_noting(self.call(items, None, avoid), Some(notice)).await
    }

    async fn there(&self, owner: &str, shard: ShardId, items: Vec<NewItem>) -> Answers<EnqueueOutcome> {
        self.links.enqueue(owner, self.call(items, Some(shard), Avoid::default())).await
    }

    fn rank(&self, item: &mut NewItem, rank: i64) {
        item.rank = Some(rank);
    }

    fn note(&self, places: &MemberPlaces) {
        if let Some(next) = places.next_shard {
            self.next_shard.get_or_init(|| next);
        }
    }

    fn is_free(&self, item: &NewItem) -> bool {
        self.request_id.is_none() && self.shard.is_none() && item.dedupe_key.is_none() && item.shard.is_none()
    }
}
