//! The way to other nodes.

use async_trait::async_trait;
use forebay_engine::{EnqueueCall, EnqueueOutcome, ExtendOf, NackOf, Settlement, ShardLoad};
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

/// The load of the shards that another node owns, four times a second. It ends when the connection breaks.
pub type Reports = BoxStream<'static, Vec<ShardLoad>>;

/// Passes calls on to other nodes. Each node is named by the address at which it answers others, `host:port`.
/// A call that is passed on is not passed on again: who does not own the shard says so.
#[async_trait]
pub trait Links: Send + Sync + 'static {
    /// The address of this node.
    fn own(&self) -> &str;
    /// Listens to what a node tells of its shards.
    async fn watch(&self, node: &str) -> Result<Reports, WatchError>;

    /// Stores items in the one shard that [`EnqueueCall::only`] names.
    async fn enqueue(&self, owner: &str, call: EnqueueCall) -> Answers<EnqueueOutcome>;
    /// Ends deliveries of one shard.
    async fn ack(&self, owner: &str, namespace: Namespace, acks: Vec<Receipt>) -> Answers<Settlement>;
    /// Gives items of one shard back.
    async fn nack(&self, owner: &str, namespace: Namespace, nacks: Vec<NackOf>) -> Answers<Settlement>;
    /// Moves the ends of leases of one shard.
    async fn extend_lease(
        &self,
        owner: &str,
        namespace: Namespace,
        extensions: Vec<ExtendOf>,
    ) -> Answers<Timestamp>;
}
