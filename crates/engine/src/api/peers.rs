//! The way to other nodes.

use async_trait::async_trait;
use forebay_store::DedupeHit;
use forebay_types::{Incarnation, Namespace, Receipt, ShardId, Topic};

use super::{FetchCall, FetchError, FetchedItems};

/// The question of a candidate to the owner of a shard whose claim was not renewed for a while: do you own
/// it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerQuestion {
    /// The shard.
    pub shard: ShardId,
    /// The epoch that the candidate saw.
    pub epoch: u64,
    /// The owner's random name that it saw.
    pub incarnation: Incarnation,
    /// The shard's server has been slow for the candidate a short time ago.
    pub server_slow: bool,
}

/// The owner's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnerAnswer {
    /// It owns the shard, and trusts its claim: the candidate stops.
    Owns,
    /// It does not own the shard, or has just given it up: it will answer nobody for it in that epoch.
    Resigned,
    /// It has the shard and can't be sure of its claim, but the server is slow for the candidate too: it
    /// keeps the shard, and answers nobody for it until it is sure again.
    Unsure,
    /// A process answers there, but it was not asked: it has no way to say more than that it lives.
    Alive,
    /// Nobody answers.
    Silent,
}

/// The question of the owner of a key's home to the owner of an earlier home: was it stored there?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyQuestion {
    /// The earlier home.
    pub shard: ShardId,
    /// The shards among which keys have their homes, in order, as far as the asker knows.
    pub homes: Vec<ShardId>,
    /// The hashes of the keys.
    pub keys: Vec<[u8; 16]>,
}

/// A key as a shard remembers it under a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedKey {
    /// As the store has it.
    pub hit: DedupeHit,
    /// The topic of its item, if the release before stored the key and the item is still there.
    pub topic: Option<Topic>,
    /// An operator has removed its item, so that its dedupe key is free.
    pub is_removed: bool,
}

impl From<DedupeHit> for RememberedKey {
    fn from(hit: DedupeHit) -> Self {
        Self { hit, topic: None, is_removed: false }
    }
}

/// The way to other nodes, as far as the engine needs it.
#[async_trait]
pub trait Peers: Send + Sync + 'static {
    /// Asks the node at this address, `host:port`, whether it owns a shard. Answers within half a second.
    async fn ask(&self, address: &str, question: OwnerQuestion) -> OwnerAnswer;

    /// Asks the node at this address what its shard remembers of keys. Answers within a second. `None`: that
    /// node can't say, for now, or does not answer.
    async fn find_keys(&self, address: &str, question: KeyQuestion) -> Option<Vec<RememberedKey>>;

    /// Leases items in the shards of the node at this address: one of which the engine was told that it is
    /// linked.
    async fn lease_items(&self, _address: &str, _call: FetchCall) -> Result<FetchedItems, FetchError> {
        Err(FetchError::Failed)
    }

    /// Returns deliveries of items of the node at this address: they certainly reached nobody. If that fails,
    /// their leases end by themselves.
    async fn return_items(&self, _address: &str, _namespace: Namespace, _receipts: Vec<Receipt>) {}

    /// Takes items of the node at this address out of their shards, before they are delivered at most once.
    /// Returns for each whether that is certain.
    async fn consume_items(
        &self,
        _address: &str,
        _namespace: Namespace,
        receipts: Vec<Receipt>,
    ) -> Vec<bool> {
        vec![false; receipts.len()]
    }
}

/// For an engine that is alone: nobody answers.
#[async_trait]
impl Peers for () {
    async fn ask(&self, _address: &str, _question: OwnerQuestion) -> OwnerAnswer {
        OwnerAnswer::Silent
    }

    async fn find_keys(&self, _address: &str, _question: KeyQuestion) -> Option<Vec<RememberedKey>> {
        None
    }
}
