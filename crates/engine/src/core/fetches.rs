//! Fetches: items that are being leased at other nodes for polls of this one.

use forebay_types::{Monotonic, TopicName};
use rustc_hash::FxHashMap;

use crate::{
    api::{DeliveredItem, HeadPosition},
    index::NodeIndex,
    messages::tenant_budget::Charge,
};

/// A fetch.
pub(crate) struct Fetch {
    /// The poll for which it is.
    pub poll: u64,
    /// The position of the demand in the poll.
    pub demand: usize,
    /// The topic.
    pub name: TopicName,
    /// At most so many items.
    pub max_items: usize,
    /// The node that is asked.
    pub node: NodeIndex,
    /// Where it answers, `host:port`.
    pub address: String,
    /// When it was asked.
    pub began: Monotonic,
    /// Items that are leased, while at-most-once items among them are taken out of their shards.
    pub items: Vec<DeliveredItem>,
    /// Its place among all fetches from that node.
    pub _place: Charge,
}

/// A fetch that is about to begin.
pub(crate) struct PlannedFetch {
    /// The position of the demand in the poll.
    pub demand: usize,
    /// The topic.
    pub name: TopicName,
    /// The node to ask.
    pub node: NodeIndex,
    /// Where it answers, `host:port`.
    pub address: String,
    /// The number of the link, as that node knows it.
    pub link: u64,
    /// At most so many items.
    pub max_items: usize,
    /// At most so many bytes of bodies.
    pub max_bytes: usize,
    /// Only items that come before this one.
    pub before: Option<HeadPosition>,
    /// Its place.
    pub place: Charge,
}

/// All fetches under way. One that is late is not among them any more: nobody waits for it.
#[derive(Default)]
pub(crate) struct Fetches(FxHashMap<u64, Fetch>);

impl Fetches {
    pub fn insert(&mut self, id: u64, fetch: Fetch) {
        self.0.insert(id, fetch);
    }

    pub fn get(&self, id: u64) -> Option<&Fetch> {
        self.0.get(&id)
    }

    pub fn remove(&mut self, id: u64) -> Option<Fetch> {
        self.0.remove(&id)
    }
}
