//! Numbers that name things.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// One shard: a MySQL schema or a SQLite file. Given by the configuration, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardId(pub u32);

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An item's number in its shard. Grows with time; stored as a signed 64-bit column, so below 2^63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Seq(pub u64);

/// A topic's number in its shard. Never used again in that shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicId(pub u32);

/// One life of an owner of a shard: random, so that two processes never share one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub [u8; 16]);

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The shards of one queue: random, and written into each of them, so that no shard of another queue is taken
/// for one of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ClusterId(pub [u8; 16]);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An item, system-wide. Written `SHARD-SEQ` in decimal, as in `3-1041`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ItemId {
    /// Where the item is stored.
    pub shard: ShardId,
    /// Its number there.
    pub seq: Seq,
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.shard.0, self.seq.0)
    }
}

/// The string is not an item id.
#[derive(Debug, thiserror::Error)]
#[error("not an item id: it must look like 3-1041")]
pub struct ItemIdError;

impl FromStr for ItemId {
    type Err = ItemIdError;

    fn from_str(text: &str) -> Result<Self, ItemIdError> {
        let (shard, seq) = text.split_once('-').ok_or(ItemIdError)?;
        let id = Self {
            shard: ShardId(shard.parse().map_err(|_| ItemIdError)?),
            seq: Seq(seq.parse().map_err(|_| ItemIdError)?),
        };
        // Only the one canonical spelling: "03-1" and "+3-1" name nothing.
        if id.to_string() == text { Ok(id) } else { Err(ItemIdError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_id_has_one_spelling() {
        let id = ItemId { shard: ShardId(3), seq: Seq(1041) };
        assert_eq!(id.to_string(), "3-1041");
        assert_eq!("3-1041".parse::<ItemId>().unwrap(), id);
        for wrong in ["", "3", "3-", "-1", "03-1", "+3-1", "3-1-2", "3-1 "] {
            assert!(wrong.parse::<ItemId>().is_err(), "{wrong:?}");
        }
    }
}
