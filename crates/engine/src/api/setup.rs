//! The parts of an engine.

use std::sync::Arc;

use forebay_types::Clock;

use super::{Duty, ListedShard, Peers, Reach, Settings, Tasks};

/// The parts of an engine.
pub struct Setup {
    /// How it works.
    pub settings: Settings,
    /// Where this process answers other nodes, `host:port`.
    pub address: String,
    /// The shards that it may have to do with at first.
    pub shards: Vec<ListedShard>,
    /// Its duty for each of them at first, and for shards that come later.
    pub duty: Duty,
    /// Where it places new items.
    pub reach: Reach,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The way to other nodes.
    pub peers: Arc<dyn Peers>,
    /// Where its tasks run.
    pub tasks: Arc<dyn Tasks>,
    /// Makes everything random about it.
    pub seed: u64,
}
