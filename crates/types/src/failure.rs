//! Failed deliveries, as an item remembers them.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, cut_text};

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
    /// Its name, as it is told to callers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nacked => "nacked",
            Self::LeaseEnded => "lease ended",
            Self::DeadLettered => "dead-lettered",
        }
    }
}

/// Why an item became a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeathCause {
    /// A delivery failed like this, and it was the last one.
    Failed(FailureCause),
    /// A delivery failed, and the item would have expired before the next one.
    ExpiredFailing,
}

impl DeathCause {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Failed(FailureCause::Nacked),
        Self::Failed(FailureCause::LeaseEnded),
        Self::Failed(FailureCause::DeadLettered),
        Self::ExpiredFailing,
    ];

    /// Its name, as it is stored with dead letters, told to callers, and a label of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed(cause) => cause.as_str(),
            Self::ExpiredFailing => "expired while failing",
        }
    }
}

/// One failed delivery of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The number of the delivery, from 1.
    pub attempt: u32,
    /// The consumer that had the item. May be empty.
    pub consumer: String,
    /// When the delivery began.
    pub leased_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it failed.
    pub cause: FailureCause,
    /// The reason that the consumer gave, at most [`Failure::REASON_BYTES`]. Empty if the lease ended.
    pub reason: String,
}

impl Failure {
    /// An item remembers so many failures: the last ones.
    pub const KEPT: usize = 5;
    /// The most bytes of a reason that are kept.
    pub const REASON_BYTES: usize = 256;

    /// A reason, cut between two characters where it is too long.
    pub fn cut(reason: &str) -> String {
        let mut reason = reason.to_owned();
        cut_text(&mut reason, Self::REASON_BYTES);
        reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        assert_eq!(Failure::cut("short"), "short");
        let long = "ü".repeat(200);
        assert_eq!(Failure::cut(&long), "ü".repeat(126) + "…");
        assert_eq!(Failure::cut(&Failure::cut(&long)), Failure::cut(&long));
    }
}
