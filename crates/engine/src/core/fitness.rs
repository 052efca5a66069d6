//! Whether a shard is better owned by another node, although its server answers here.

use std::time::Duration;

use forebay_types::Monotonic;

/// A shard whose batch was stuck here is better owned elsewhere for so long.
const STUCK_FOR: Duration = Duration::from_secs(60);

/// A shard whose schema this node cannot use is better owned elsewhere after so long. Before that, somebody
/// may be at work on it.
const UNUSABLE_FOR: Duration = Duration::from_secs(10);

/// The reasons against this node as the owner of a shard.
#[derive(Debug, Default)]
pub(crate) struct Fitness {
    /// When it was given up because a batch was stuck.
    stuck_at: Option<Monotonic>,
    /// Since when its schema has been one that this node cannot use.
    unusable_since: Option<Monotonic>,
}

impl Fitness {
    /// The shard is given up because a batch is stuck.
    pub fn stuck(&mut self, at: Monotonic) {
        self.stuck_at = Some(at);
    }

    /// An attempt to take the shard over ended. `usable`: the schema was not what it failed at.
    pub fn tried(&mut self, usable: bool, at: Monotonic) {
        self.unusable_since = if usable { None } else { Some(self.unusable_since.unwrap_or(at)) };
    }

    /// Whether another node should own the shard.
    pub fn is_for_others(&self, at: Monotonic) -> bool {
        self.stuck_at.is_some_and(|stuck| at.since(stuck) < STUCK_FOR)
            || self.unusable_since.is_some_and(|since| at.since(since) >= UNUSABLE_FOR)
    }
}
