//! The way to other nodes.

use std::time::Duration;

use async_trait::async_trait;
use forebay_engine::{
    ActiveTopics, ActiveTopicsCall, EnqueueCall, EnqueueOutcome, ExtendOf, NackAction, NackOf, Settlement,
    ShardLoad, Subscription, TopicHead,
};
use forebay_types::{Namespace, Receipt, Refusal, Timestamp};
use futures_util::stream::BoxStream;

/// Why another node did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkError {
    /// It was not reached: nothing of the call has happened.
    Unreached(String),
    /// The call may have reached it, and no answer came back: it may or may not have taken effect.
    Lost(String),
}

/// The answer of another node: one result a member.
pub type Answers<T> = Result<Vec<Result<T, Refusal>>, LinkError>;

/// Why another node tells nothing of its shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchError {
    /// Its program is of an earlier release, which does not.
    Older,
    /// It was not reached, or did not answer.
    Unreached,
}

/// A report of another node.
#[derive(Debug, Clone)]
pub struct PeerReport {
    /// The number of the link. `None`: items of its shards can't be had at other nodes.
    pub link: Option<u64>,
    /// The load of the shards that it owns, four times a second. `None`: this report says nothing of it.
    pub loads: Option<Vec<ShardLoad>>,
    /// Topics that were subscribed to.
    pub heads: Vec<TopicHead>,
}

/// Reports of another node. They end when the connection breaks.
pub type Reports = BoxStream<'static, PeerReport>;

/// Passes calls on to other nodes. Each node is named by the address at which it answers others, `host:port`.
/// A call that is passed on is not passed on again: who does not own the shard says so.
#[async_trait]
pub trait Links: Send + Sync + 'static {
    /// The address of this node.
    fn own(&self) -> &str;
    /// Listens to what a node tells of its shards and of topics, and subscribes to these.
    async fn watch(
        &self,
        node: &str,
        subscriptions: BoxStream<'static, Vec<Subscription>>,
    ) -> Result<Reports, WatchError>;

    /// Lists topics of a node's own shards that have something to deliver.
    async fn active_topics(&self, node: &str, call: ActiveTopicsCall) -> Result<ActiveTopics, LinkError>;

    /// Stores items in the one shard that [`EnqueueCall::only`] names.
    async fn enqueue(&self, owner: &str, call: EnqueueCall) -> Answers<EnqueueOutcome>;
    /// Ends deliveries of one shard.
    async fn ack(&self, owner: &str, namespace: Namespace, acks: Vec<Receipt>) -> Answers<Settlement>;
    /// Gives items of one shard back.
    async fn nack(&self, owner: &str, namespace: Namespace, nacks: Vec<NackOf>) -> Answers<Settlement>;
    /// Returns deliveries of a node's items: they certainly reached nobody. Without an answer their leases
    /// end by themselves.
    async fn return_items(&self, owner: &str, namespace: Namespace, receipts: Vec<Receipt>) {
        let action = NackAction::Release(Duration::ZERO);
        let nack = |receipt| NackOf { receipt, action, metadata: None, reason: String::new() };
        let _ = self.nack(owner, namespace, receipts.into_iter().map(nack).collect()).await;
    }

    /// Takes a node's items out of their shards, before they are delivered at most once. Returns for each
    /// whether that is certain.
    async fn consume_items(&self, owner: &str, namespace: Namespace, receipts: Vec<Receipt>) -> Vec<bool> {
        let count = receipts.len();
        let answers = self.ack(owner, namespace, receipts).await;
        answers.map_or(vec![false; count], |answers| answers.iter().map(Result::is_ok).collect())
    }

    /// Moves the ends of leases of one shard.
    async fn extend_lease(
        &self,
        owner: &str,
        namespace: Namespace,
        extensions: Vec<ExtendOf>,
    ) -> Answers<Timestamp>;
}
