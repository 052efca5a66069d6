//! The hashes under which calls and items are remembered.

use forebay_types::Seq;

use crate::planted::{Bug, on};

/// 128 bits over a namespace and a dedupe key or request id, or over these and a topic.
pub(crate) type KeyHash = [u8; 16];

/// The prefix of the hashes of removals. The rest is the number of the item.
const REMOVAL: [u8; 8] = *b"removed\0";

/// Under what a call with a request id is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestKey {
    /// Over namespace and id.
    pub hash: KeyHash,
    /// The call names its shard: that is its home, whichever shards there are.
    pub names_shard: bool,
    /// The digest of the call's items. `None`: as the release before has it, which does not compare calls.
    pub content: Option<[u8; 16]>,
}

/// Under what an item with a dedupe key is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemKey {
    /// Over namespace, topic and key.
    pub own: KeyHash,
    /// Over namespace and key. It names the home shard. The release before knows keys by it alone, so each
    /// key is stored under it too: a node may be put back.
    pub shared: KeyHash,
    /// The release before has stored the item of another topic there. That one is not overwritten.
    pub is_shared_taken: bool,
}

impl ItemKey {
    /// The hashes under which it is stored.
    pub fn stored_under(&self) -> impl Iterator<Item = KeyHash> + use<> {
        let is_shared = !self.is_shared_taken && self.shared != self.own && !on(Bug::NoKeysForOlder);
        let shared = is_shared.then_some(self.shared);
        std::iter::once(self.own).chain(shared)
    }

    /// The mark in its rows, so that they can be told from those of the release before.
    pub fn mark(&self) -> Option<[u8; 16]> {
        (self.own != self.shared).then_some(self.own)
    }
}

/// Under what it is remembered that an operator has removed an item: its dedupe key is free then.
pub(crate) fn removal(seq: Seq) -> KeyHash {
    let mut hash = [0; 16];
    hash[..8].copy_from_slice(&REMOVAL);
    hash[8..].copy_from_slice(&seq.0.to_be_bytes());
    hash
}
