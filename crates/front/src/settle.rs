//! Ack, nack and lease extension: each member goes to the shard that its receipt names.

use forebay_engine::{Avoid, Engine, ExtendOf, NackOf, Notice, Settled, Settlement};
use forebay_types::{Namespace, Receipt, Refusal, ShardId, Timestamp};

use crate::{
    links::{Answers, Links},
    route::Verb,
};

/// An ack call, without its members.
pub(crate) struct Ack<'a> {
    /// This node's engine.
    pub engine: &'a Engine,
    /// The other nodes.
    pub links: &'a dyn Links,
    /// The tenant.
    pub namespace: Namespace,
}

impl Verb for Ack<'_> {
    type Member = Receipt;
    type Answer = Settlement;

    async fn here(&self, acks: Vec<Receipt>, _avoid: Avoid, notice: Notice) -> Result<Vec<Settled>, Refusal> {
        self.engine.ack(self.namespace.clone(), acks, Some(notice)).await
    }

    async fn there(&self, owner: &str, _shard: ShardId, acks: Vec<Receipt>) -> Answers<Settlement> {
        self.links.ack(owner, self.namespace.clone(), acks).await
    }
}

/// A nack call, without its members.
pub(crate) struct Nack<'a> {
    /// This node's engine.
    pub engine: &'a Engine,
    /// The other nodes.
    pub links: &'a dyn Links,
    /// The tenant.
    pub namespace: Namespace,
}

impl Verb for Nack<'_> {
    type Member = NackOf;
    type Answer = Settlement;

    async fn here(&self, nacks: Vec<NackOf>, _avoid: Avoid, notice: Notice) -> Result<Vec<Settled>, Refusal> {
        self.engine.nack(self.namespace.clone(), nacks, Some(notice)).await
    }

    async fn there(&self, owner: &str, _shard: ShardId, nacks: Vec<NackOf>) -> Answers<Settlement> {
        self.links.nack(owner, self.namespace.clone(), nacks).await
    }
}

/// A call that extends leases, without its members.
pub(crate) struct ExtendLease<'a> {
    /// This node's engine.
    pub engine: &'a Engine,
    /// The other nodes.
    pub links: &'a dyn Links,
    /// The tenant.
    pub namespace: Namespace,
}

impl Verb for ExtendLease<'_> {
    type Member = ExtendOf;
    type Answer = Timestamp;

    async fn here(
        &self,
        extensions: Vec<ExtendOf>,
        _avoid: Avoid,
        notice: Notice,
    ) -> Result<Vec<Result<Timestamp, Refusal>>, Refusal> {
        self.engine.extend_lease(self.namespace.clone(), extensions, Some(notice)).await
    }

    async fn there(&self, owner: &str, _shard: ShardId, extensions: Vec<ExtendOf>) -> Answers<Timestamp> {
        self.links.extend_lease(owner, self.namespace.clone(), extensions).await
    }
}
