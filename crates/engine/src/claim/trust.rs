//! How long an owner may trust its claim without asking the store.

use std::time::Duration;

use forebay_types::Monotonic;

use crate::planted::{Bug, on};

/// An owner's trust that no other node can own its shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Trust {
    /// How long a sign of life is good for: four fifths of the shard lease.
    span: Duration,
    /// The claim is trusted until then.
    until: Monotonic,
    /// The shard is about to be released, so that another node may own it at any time.
    resigned: bool,
}

impl Trust {
    /// Begins with a take-over whose call began at `began`.
    pub fn new(shard_lease: Duration, began: Monotonic) -> Self {
        let span = shard_lease - shard_lease / 5;
        Self { span, until: began.plus(span), resigned: false }
    }

    /// A renewal or a batch that began at `began` passed the fence.
    pub fn renewed(&mut self, began: Monotonic) {
        self.until = self.until.max(began.plus(self.span));
    }

    /// Whether no other node can own the shard.
    pub fn holds(&self, at: Monotonic) -> bool {
        at < self.until && (!self.resigned || on(Bug::TrustedAfterRelease))
    }

    /// The shard is about to be released.
    pub fn resign(&mut self) {
        self.resigned = true;
    }
}
