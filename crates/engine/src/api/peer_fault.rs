//! Messages that no node of this program sends.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

/// A part of a message of another node that cannot be right. It is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerFault {
    /// A subscription without a topic.
    Subscription,
    /// News without a topic.
    Head,
    /// An item that was leased, without its delivery.
    Item,
    /// More items than were asked for.
    TooManyItems,
}

/// The faults that the log has said.
static SAID: Mutex<BTreeSet<PeerFault>> = Mutex::new(BTreeSet::new());

impl PeerFault {
    /// All of them, as metrics name them.
    pub const NAMES: [&str; 4] = ["subscription", "head", "item", "too many items"];

    /// Counts it. The log says each once.
    pub fn count(self) {
        let name = Self::NAMES[self as usize];
        metrics::counter!("forebay_peer_faults_total", "fault" => name).increment(1);
        if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(self) {
            tracing::warn!("another node sends what no node of this release does, which is left out: {name}");
        }
    }
}
