//! Failed deliveries, as an item remembers them.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// How a delivery failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureCause {
    /// The consumer gave the item back.
    Nacked,
    /// The lease ended without an ack.
    LeaseEnded,
    /// The consumer sent the item to the dead letters.
    DeadLettered,
}

impl FailureCause {
    /// Its name, as it is stored with dead letters and told to callers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nacked => "nacked",
            Self::LeaseEnded => "lease ended",
            Self::DeadLettered => "dead-lettered",
        }
    }
}

/// One failed delivery of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The number of the delivery, from 1.
    pub attempt: u32,
    /// Who had the item. May be empty.
    pub consumer: String,
    /// When the delivery began.
    pub leased_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it failed.
    pub cause: FailureCause,
    /// What the consumer said, at most [`Failure::REASON_BYTES`]. Empty if the lease ended.
    pub reason: String,
}

impl Failure {
    /// An item remembers so many failures: the last ones.
    pub const KEPT: usize = 5;
    /// The most bytes of a reason that are kept.
    pub const REASON_BYTES: usize = 256;

    /// The beginning of a reason, cut between two characters.
    pub fn cut(reason: &str) -> &str {
        &reason[..reason.floor_char_boundary(Self::REASON_BYTES)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        assert_eq!(Failure::cut("short"), "short");
        let long = "ü".repeat(200);
        assert_eq!(Failure::cut(&long), "ü".repeat(128));
        let odd = format!("x{long}");
        assert_eq!(Failure::cut(&odd).len(), 255);
    }
}
