//! Delivery order.

use serde::{Deserialize, Serialize};

use crate::Seq;

/// The place of an item in its topic: priority first, then the time since which it is ready, then age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// When the item became ready, in microseconds; unique among the items that one node admitted.
    pub rank: i64,
    /// Breaks ties.
    pub seq: Seq,
}

impl Key {
    /// Before every key that an item can have.
    pub const MIN: Self = Self { priority: i32::MIN, rank: i64::MIN, seq: Seq(0) };
}

/// How far a window of ready items reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Horizon {
    /// Every ready item up to and including this key is in the window.
    Through(Key),
    /// Every ready item is in the window.
    End,
}

impl Horizon {
    /// Whether an item with `key` belongs into the window.
    pub fn covers(self, key: Key) -> bool {
        match self {
            Self::Through(last) => key <= last,
            Self::End => true,
        }
    }
}
