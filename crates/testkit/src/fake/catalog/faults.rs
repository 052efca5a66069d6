//! The faults of a fake catalog. All probabilities are per mille of the calls.

use std::time::Duration;

use crate::fake::Dice;

/// How a catalog that is out of reach behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Every call fails at once.
    Refuses,
    /// No call is answered.
    Hangs,
}

/// How a catalog behaves.
#[derive(Debug, Clone)]
pub struct CatalogFaults {
    /// Milliseconds until a call takes effect.
    pub call_ms: (u64, u64),
    /// Milliseconds until its answer arrives.
    pub reply_ms: (u64, u64),
    /// How often a call is slow.
    pub slow: u32,
    /// Additional milliseconds of a slow call.
    pub slow_ms: (u64, u64),
    /// How often a call is lost before it takes effect.
    pub lost_before: u32,
    /// How often a call takes effect and its answer is lost.
    pub lost_after: u32,
    /// It is out of reach.
    pub outage: Option<Outage>,
    /// It answers no call of this process.
    pub cut_off: Option<usize>,
}

impl CatalogFaults {
    /// A healthy catalog.
    pub fn none() -> Self {
        Self { call_ms: (1, 4), reply_ms: (0, 2), ..Self::instant() }
    }

    /// A healthy catalog that takes no time at all.
    pub fn instant() -> Self {
        Self {
            call_ms: (0, 0),
            reply_ms: (0, 0),
            slow: 0,
            slow_ms: (0, 0),
            lost_before: 0,
            lost_after: 0,
            outage: None,
            cut_off: None,
        }
    }

    /// How long a call takes to arrive.
    pub(super) fn pause(&self, dice: &mut Dice) -> Duration {
        let slow = if dice.chance(self.slow) { dice.millis(self.slow_ms) } else { Duration::ZERO };
        dice.millis(self.call_ms) + slow
    }
}
