//! Enqueue: items are stored in their shards.

use forebay_engine::{Avoid, Engine, EnqueueCall, EnqueueOutcome, NewItem, Notice};
use forebay_types::{Namespace, Refusal, ShardId};

use crate::{
    links::{Answers, Links},
    route::Verb,
};

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
}

impl Enqueue<'_> {
    fn call(&self, items: Vec<NewItem>, only: Option<ShardId>, avoid: Avoid) -> EnqueueCall {
        let (namespace, request_id) = (self.namespace.clone(), self.request_id.clone());
        EnqueueCall { namespace, items, request_id, only, avoid }
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

    fn is_free(&self, item: &NewItem) -> bool {
        self.request_id.is_none() && item.dedupe_key.is_none() && item.shard.is_none()
    }
}
