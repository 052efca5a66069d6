//! A topic in the shards of other nodes.

use std::sync::Arc;

use forebay_types::Monotonic;
use smallvec::SmallVec;

use crate::{
    api::{ReadyState, TopicHead},
    index::NodeIndex,
    messages::tenant_budget::Charge,
};

/// A topic.
#[derive(Debug)]
pub(crate) struct RemoteTopic {
    /// The nodes that may have items of it.
    pub sources: SmallVec<[Source; 2]>,
    /// When nodes were asked first.
    pub begun_at: Monotonic,
    /// When somebody polled last.
    pub asked_at: Monotonic,
    /// Its bytes.
    charge: Charge,
}

/// A node that may have items of a topic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// The node.
    pub node: NodeIndex,
    /// Its ready items as it told of them, less those that were asked for since. `None`: nothing yet.
    pub state: Option<ReadyState>,
    /// It refused to lease items, and is not asked before.
    pub suspended_until: Option<Monotonic>,
    /// It was told that so many items are wanted. `None`: it knows nothing of the topic.
    told: Option<u32>,
    /// It offers items, and waits for an answer.
    offers: bool,
}

impl RemoteTopic {
    /// Is polled for the first time.
    pub fn new(at: Monotonic, charge: Charge) -> Self {
        Self { sources: SmallVec::new(), begun_at: at, asked_at: at, charge }
    }

    /// The payer of its bytes. `None`: the namespace.
    pub const fn payer(&self) -> Option<&Arc<str>> {
        self.charge.payer()
    }

    /// A node may have items.
    pub fn add(&mut self, node: NodeIndex) {
        if self.sources.iter().all(|source| source.node != node) {
            self.sources.push(Source { node, state: None, suspended_until: None, told: None, offers: false });
        }
    }

    /// A node as a source, to be changed.
    pub fn source_mut(&mut self, node: NodeIndex) -> Option<&mut Source> {
        self.sources.iter_mut().find(|source| source.node == node)
    }
}

impl Source {
    /// It has items that were not asked for yet.
    pub fn has_items(&self) -> bool {
        self.state.is_some_and(|state| state.head.is_some() && state.ready > 0)
    }

    /// Items of it are about to be asked for. That answers its offer.
    pub fn take_off(&mut self, items: u32) {
        if let Some(state) = &mut self.state {
            state.ready = state.ready.saturating_sub(items);
        }
        self.offers = false;
    }

    /// It tells of the topic.
    pub fn take_in(&mut self, head: &TopicHead) {
        let ready = head.state.ready.max(head.offered);
        self.state = Some(ReadyState { ready, ..head.state });
        if head.offered > 0 {
            // With an offer it forgets what was wanted.
            (self.told, self.offers) = (Some(0), true);
            self.suspended_until = None;
        }
    }

    /// It is to be told of the topic as if for the first time.
    pub fn tell_anew(&mut self) {
        self.told = None;
    }

    /// It gives nothing before. Then it is asked again, for what it told of last.
    pub fn suspend(&mut self, until: Monotonic) {
        self.suspended_until = Some(until);
        if let Some(state) = &mut self.state {
            state.ready = state.ready.max(1);
        }
    }

    /// Polls want this number of items. Returns the number that it is to be told, if any: small changes are
    /// not worth a message. An offer of which nothing was asked for is declined; the number is told later.
    pub fn next_told(&mut self, wanted: u32) -> Option<u32> {
        let is_news = match self.told {
            None => true,
            Some(0) => wanted > 0,
            Some(told) => wanted / 2 >= told,
        };
        let tells = match std::mem::take(&mut self.offers) {
            true => Some(0),
            false => is_news.then_some(wanted),
        };
        self.told = tells.or(self.told);
        tells
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::TopicName;

    use super::*;
    use crate::{api::HeadPosition, messages::tenant_budget::TenantBudget};

    fn source() -> Source {
        let charge = TenantBudget::new(9).take(&"ns".into(), 1).unwrap();
        let mut topic = RemoteTopic::new(Monotonic::default(), charge);
        topic.add(NodeIndex(1));
        topic.add(NodeIndex(1));
        assert_eq!(topic.sources.len(), 1, "a node is one source");
        topic.sources[0]
    }

    fn news(ready: u32, offered: u32) -> TopicHead {
        let head = Some(HeadPosition { priority: 0, rank: 0 });
        TopicHead { name: TopicName::new("ns", "t"), state: ReadyState { head, ready, round: 0 }, offered }
    }

    #[test]
    fn a_node_hears_of_wants_that_begin_or_double() {
        let mut source = source();
        assert_eq!(source.next_told(0), Some(0), "the subscription");
        assert_eq!([1, 1, 0, 1].map(|wanted| source.next_told(wanted)), [Some(1), None, None, None]);
        assert_eq!([2, 3, 4].map(|wanted| source.next_told(wanted)), [Some(2), None, Some(4)]);
    }

    #[test]
    fn an_offer_that_nobody_needs_is_declined_and_wants_are_told_later() {
        let mut source = source();
        source.next_told(1);
        source.take_in(&news(0, 2));
        assert!(source.has_items(), "what is offered is there");
        assert_eq!([5, 5, 5].map(|wanted| source.next_told(wanted)), [Some(0), Some(5), None]);
        // A fetch answers an offer.
        source.take_in(&news(1, 1));
        source.take_off(1);
        assert!(!source.has_items());
        assert_eq!([0, 3].map(|wanted| source.next_told(wanted)), [None, Some(3)]);
    }

    #[test]
    fn a_source_that_refused_is_asked_again() {
        let mut source = source();
        source.take_in(&news(1, 0));
        source.take_off(9);
        source.suspend(Monotonic::default());
        assert!(source.has_items());
    }
}
