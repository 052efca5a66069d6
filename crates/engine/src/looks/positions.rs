//! Where items are in the lists of their states, over all shards.

use forebay_store::{StoredItem, StoredState};
use forebay_types::{ItemId, Key, Seq, ShardId, Timestamp};

use crate::api::{ItemPosition, LeaseSnapshot};

/// Where a dead letter is in the list of those: the latest first.
pub fn death_position(died_at: Timestamp, seq: Seq, shard: ShardId) -> ItemPosition {
    ItemPosition { first: -died_at.as_micros(), second: 0, shard, seq: i64::MAX as u64 - seq.0 }
}

/// Where a ready or scheduled item is in the list of those.
pub fn position(key: Key, shard: ShardId) -> ItemPosition {
    ItemPosition { first: key.priority.into(), second: key.rank, shard, seq: key.seq.0 }
}

/// The number in a shard behind which its items come, of those that share a position with another shard's.
pub fn seq_before(after: ItemPosition, shard: ShardId) -> Seq {
    match after.shard.cmp(&shard) {
        std::cmp::Ordering::Less => Seq(0),
        std::cmp::Ordering::Equal => Seq(after.seq),
        std::cmp::Ordering::Greater => Seq(i64::MAX as u64),
    }
}

/// The key in a shard behind which its items come.
pub fn key_before(after: ItemPosition, shard: ShardId) -> Key {
    let priority = i32::try_from(after.first).unwrap_or(i32::MAX);
    Key { priority, rank: after.second, seq: seq_before(after, shard) }
}

/// Where an item is in the list of its state.
pub fn position_of(id: ItemId, stored: &StoredItem, lease: Option<&LeaseSnapshot>) -> ItemPosition {
    match (&stored.state, lease) {
        (_, Some(lease)) => {
            ItemPosition { first: lease.ends_at.as_micros(), second: 0, shard: id.shard, seq: id.seq.0 }
        }
        (StoredState::Dead(death), None) => death_position(death.died_at, id.seq, id.shard),
        (StoredState::Ready | StoredState::Scheduled, None) => position(stored.key, id.shard),
    }
}
