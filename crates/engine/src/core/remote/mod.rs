//! The topics of other nodes, as these tell of them: what the polls of this node may have from there. All of
//! it may be late. A lease is made by the owner alone.

mod node;
mod rate;
mod topic;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::RandomState,
    num::NonZeroU32,
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use forebay_types::{Monotonic, TopicName};
use rand::{Rng, seq::IndexedRandom as _};
use smallvec::SmallVec;

pub(crate) use self::topic::Source;
use self::{node::RemoteNode, rate::TenantRate, topic::RemoteTopic};
use crate::{
    api::{PeerLink, ReadyState, Subscription, TopicHead},
    core::{news, topic_turns::TopicTurns},
    index::NodeIndex,
    messages::tenant_budget::TenantBudget,
    planted::{Bug, on},
    striped::StripedMap,
};

/// How long the first poll of a topic waits for what other nodes say of it.
const FIRST_HEADS_TIMEOUT: Duration = Duration::from_millis(50);
/// A topic for which nobody polls is followed for so long.
const UNUSED_AFTER: Duration = Duration::from_secs(10);
/// Bytes of a topic that is followed, beside its name.
const TOPIC_BYTES: usize = 512;
/// Topics that a tenant may begin to follow in a second.
const FOLLOWS_PER_SECOND: NonZeroU32 = NonZeroU32::new(2_000).unwrap();
/// How often in a second a tenant may have a node asked that tells nothing of a topic. Each time is a call of
/// its own, with a tenth of a millisecond of work here and there.
const GUESSES_PER_SECOND: NonZeroU32 = NonZeroU32::new(500).unwrap();
/// Topics that are visited in one turn, once a node is linked, or because nobody may poll them any more.
const VISITED_PER_TURN: usize = 512;

/// The topics of other nodes.
#[derive(Debug)]
pub(crate) struct RemoteTopics {
    /// The nodes whose items can be had.
    nodes: BTreeMap<NodeIndex, RemoteNode>,
    /// Their indexes, by address.
    by_address: BTreeMap<String, NodeIndex>,
    /// Topics that somebody has polled lately. Each poll looks several times for each of its names.
    topics: StripedMap<TopicName, RemoteTopic, RandomState>,
    /// When each of them is looked at: whether anybody polls it still.
    looks: BTreeSet<(Monotonic, TopicName)>,
    /// Topics of which nodes may have to be told something.
    changed: TopicTurns,
    /// Nodes for which all topics are visited, and up to which look they were.
    walks: BTreeMap<NodeIndex, Option<(Monotonic, TopicName)>>,
    /// Bytes of the topics.
    bytes: Arc<TenantBudget>,
    /// How often a tenant may follow another topic.
    follows: TenantRate,
    /// How often it may have a node asked that tells nothing of a topic.
    guesses: TenantRate,
    /// Numbers the nodes.
    next: usize,
}

impl RemoteTopics {
    /// Follows topics of so many bytes at most; a tenant may have a quarter.
    pub fn new(bytes: usize) -> Self {
        Self {
            nodes: BTreeMap::new(),
            by_address: BTreeMap::new(),
            topics: StripedMap::default(),
            looks: BTreeSet::new(),
            changed: TopicTurns::default(),
            walks: BTreeMap::new(),
            bytes: TenantBudget::new(bytes),
            follows: TenantRate::new(FOLLOWS_PER_SECOND),
            guesses: TenantRate::new(GUESSES_PER_SECOND),
            next: 0,
        }
    }

    /// Items of another node can be had.
    pub fn has_nodes(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Where these nodes answer.
    pub fn addresses(&self) -> Vec<String> {
        self.by_address.keys().cloned().collect()
    }

    /// Items of this node can be had.
    pub fn is_linked(&self, address: &str) -> bool {
        self.by_address.contains_key(address)
    }

    /// This node answered late, and is not asked for items yet.
    pub fn is_late(&self, address: &str, at: Monotonic) -> bool {
        let node = self.by_address.get(address).and_then(|index| self.nodes.get(index));
        node.is_some_and(|node| node.is_late(at))
    }

    /// Bytes of the topics that are followed.
    pub fn bytes(&self) -> usize {
        self.bytes.used()
    }

    /// How many topics are followed.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.topics.len()
    }

    /// Items of a node's shards can be had over a link from now on.
    pub fn link(&mut self, address: String, link: PeerLink) {
        self.unlink(&address);
        self.next += 1;
        let index = NodeIndex(self.next);
        self.by_address.insert(address.clone(), index);
        self.nodes.insert(index, RemoteNode::new(address, link));
        self.walks.insert(index, None);
    }

    /// The link to a node has ended. What it told is gone with it.
    pub fn unlink(&mut self, address: &str) {
        if let Some(index) = self.by_address.remove(address)
            && !on(Bug::SourceKept)
        {
            self.nodes.remove(&index);
            self.walks.remove(&index);
        }
    }

    /// Only these nodes live.
    pub fn retain(&mut self, living: &[String]) {
        let gone = self.by_address.keys().filter(|address| !living.contains(address));
        let gone: Vec<String> = gone.cloned().collect();
        gone.iter().for_each(|address| self.unlink(address));
    }

    /// A node whose items can be had.
    pub fn node(&self, index: NodeIndex) -> Option<&RemoteNode> {
        self.nodes.get(&index)
    }

    /// A client polls a topic: other nodes are asked to tell of it, if there is room for it. So are nodes
    /// that are linked later, as long as the poll waits.
    pub fn ask(&mut self, name: &TopicName, at: Monotonic) {
        if let Some(topic) = self.topics.get_mut(name) {
            topic.asked_at = at;
            return;
        }
        let refused =
            |limit| metrics::counter!("forebay_limit_refusals_total", "limit" => limit).increment(1);
        if !self.follows.take(&name.namespace, at) {
            return refused("newly followed topics");
        }
        let bytes = name.namespace.len() + name.topic.len() + TOPIC_BYTES;
        let Ok(charge) = self.bytes.take(&name.namespace, bytes) else {
            return refused("followed topics");
        };
        let mut topic = RemoteTopic::new(at, charge);
        self.nodes.keys().for_each(|node| topic.add(*node));
        self.topics.insert(name.clone(), topic);
        self.looks.insert((at.plus(UNUSED_AFTER), name.clone()));
        self.changed.insert(name.clone(), ());
    }

    /// Until when what nodes say of a topic is to be waited for. `None`: all that is to be known is.
    pub fn unknown_until(&self, name: &TopicName, at: Monotonic) -> Option<Monotonic> {
        let topic = self.topics.get(name)?;
        let until = topic.begun_at.plus(FIRST_HEADS_TIMEOUT);
        let unknown = |source: &Source| source.state.is_none() && self.nodes.contains_key(&source.node);
        (at < until && topic.sources.iter().any(unknown)).then_some(until)
    }

    /// The sources of a topic that can be asked for items now. `later`: when one can that has some.
    pub fn sources(&self, name: &TopicName, at: Monotonic, later: &mut Option<Monotonic>) -> Vec<Source> {
        let Some(topic) = self.topics.get(name) else { return Vec::new() };
        let mut found = Vec::new();
        for source in topic.sources.iter().filter(|source| source.has_items()) {
            let Some(node) = self.nodes.get(&source.node) else { continue };
            match node.suspended_until(&name.namespace).into_iter().chain(source.suspended_until).max() {
                Some(until) if at < until => *later = Some(later.map_or(until, |later| later.min(until))),
                _ => found.push(*source),
            }
        }
        found
    }

    /// Nodes that tell nothing of a topic: it is not followed, or they have no room for another follower.
    /// They may have items all the same.
    fn silent(&self, name: &TopicName, at: Monotonic) -> SmallVec<[NodeIndex; 4]> {
        let is_asked = |node: &NodeIndex| {
            self.nodes.get(node).is_some_and(|node| !node.is_suspended(&name.namespace, at))
        };
        match self.topics.get(name) {
            // Their first words are waited for.
            Some(topic) if at < topic.begun_at.plus(FIRST_HEADS_TIMEOUT) => SmallVec::new(),
            Some(topic) => {
                let silent = topic.sources.iter().filter(|source| source.state.is_none());
                silent.map(|source| source.node).filter(is_asked).collect()
            }
            None => self.nodes.keys().copied().filter(is_asked).collect(),
        }
    }

    /// Whether a node tells nothing of a topic.
    pub fn has_silent(&self, name: &TopicName, at: Monotonic) -> bool {
        !self.silent(name, at).is_empty()
    }

    /// One of the nodes that tell nothing of a topic, to be asked for items. It is asked to tell of it, too,
    /// in case there is room by now. `None`: the tenant has had nodes asked too often.
    pub fn guess(&mut self, name: &TopicName, at: Monotonic, rng: &mut impl Rng) -> Option<NodeIndex> {
        let node = *self.silent(name, at).choose(rng)?;
        if !self.guesses.take(&name.namespace, at) {
            return None;
        }
        match self.source_mut(name, node) {
            Some(source) => {
                source.tell_anew();
                self.changed.insert(name.clone(), ());
            }
            None => self.ask(name, at),
        }
        Some(node)
    }

    /// Items of a source are about to be asked for.
    pub fn take_off(&mut self, name: &TopicName, node: NodeIndex, items: u32) {
        if let Some(source) = self.source_mut(name, node).filter(|_| !on(Bug::CountsKept)) {
            source.take_off(items);
        }
    }

    /// A node tells of a topic. Returns whether polls of the topic have to look.
    pub fn take_in(&mut self, address: &str, head: &TopicHead) -> bool {
        let Some(index) = self.by_address.get(address).copied() else { return false };
        let Some(source) = self.source_mut(&head.name, index) else { return false };
        source.take_in(head);
        if head.offered > 0 {
            self.changed.insert(head.name.clone(), ());
        }
        true
    }

    /// Items of a source were asked for, and it answers in time with what is left. One that tells nothing of
    /// the topic has other items later, and would not say so.
    pub fn fetched(&mut self, name: &TopicName, node: NodeIndex, left: Option<ReadyState>) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.answered(&name.namespace);
        }
        if let Some(state) = left
            && let Some(source) = self.source_mut(name, node)
            && source.state.is_some()
        {
            source.state = Some(state);
        }
    }

    /// A source gives nothing of a topic until then.
    pub fn suspend(&mut self, name: &TopicName, node: NodeIndex, until: Monotonic) {
        if let Some(source) = self.source_mut(name, node) {
            source.suspend(until);
        }
    }

    /// A node has not answered in time, or not at all.
    pub fn was_late(&mut self, name: &TopicName, node: NodeIndex, at: Monotonic) {
        self.suspend(name, node, at);
        if let Some(node) = self.nodes.get_mut(&node) {
            node.suspend(&name.namespace, at);
        }
    }

    fn source_mut(&mut self, name: &TopicName, node: NodeIndex) -> Option<&mut Source> {
        self.topics.get_mut(name)?.source_mut(node)
    }

    /// The polls of a topic that wait may be others than before.
    pub fn mark_changed(&mut self, name: &TopicName) {
        if self.has_nodes() && self.topics.contains_key(name) {
            self.changed.insert(name.clone(), ());
        }
    }

    /// Takes the next topic of which nodes may have to be told something, in turn by tenant.
    pub fn next_changed(&mut self) -> Option<TopicName> {
        self.changed.next().map(|(name, ())| name)
    }

    /// Polls want this number of items of a topic: nodes that have to know are told. Returns whether one was
    /// told of none for now, since it offered some that nobody asks for.
    pub fn want(&mut self, name: &TopicName, wanted: u32) -> bool {
        let Some(topic) = self.topics.get_mut(name) else { return false };
        let (mut declined, payer) = (false, topic.payer().cloned());
        topic.sources.retain(|source| self.nodes.contains_key(&source.node));
        for source in &mut topic.sources {
            if let Some(told) = source.next_told(wanted)
                && let Some(node) = self.nodes.get_mut(&source.node)
            {
                declined |= told < wanted;
                node.tell(Subscription { name: name.clone(), wanted: Some(told), payer: payer.clone() });
            }
        }
        declined
    }

    /// Visits topics: for nodes that were linked, and those that nobody polls any more. `waits`: whether a
    /// poll waits for it.
    pub fn visit(&mut self, at: Monotonic, waits: impl Fn(&TopicName) -> bool) {
        if let Some(mut walk) = self.walks.first_entry() {
            let (node, from) = (*walk.key(), walk.get().clone());
            let behind = (from.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
            let mut last = None;
            // Looks that come to be in the meantime are behind all others.
            for look @ (_, name) in
                self.looks.range::<(Monotonic, TopicName), _>(behind).take(VISITED_PER_TURN)
            {
                if let Some(topic) = self.topics.get_mut(name) {
                    topic.add(node);
                }
                self.changed.insert(name.clone(), ());
                last = Some(look.clone());
            }
            match last {
                Some(last) => *walk.get_mut() = Some(last),
                None => drop(walk.remove()),
            }
        }
        for _ in 0..VISITED_PER_TURN {
            if self.looks.first().is_none_or(|(due, _)| *due > at) {
                break;
            }
            let Some((_, name)) = self.looks.pop_first() else { break };
            let Some(topic) = self.topics.get_mut(&name) else { continue };
            if waits(&name) {
                topic.asked_at = at;
            }
            let due = topic.asked_at.plus(UNUSED_AFTER);
            if due > at {
                self.looks.insert((due, name));
                continue;
            }
            for source in self.topics.remove(&name).into_iter().flat_map(|topic| topic.sources) {
                if let Some(node) = self.nodes.get_mut(&source.node) {
                    node.tell(Subscription { name: name.clone(), wanted: None, payer: None });
                }
            }
        }
    }

    /// Sends what nodes are to be told. Returns whether something is left: for want of room, or of a turn.
    pub fn flush(&mut self) -> bool {
        news::send(self.nodes.values_mut().map(|node| &mut node.news))
    }

    /// Whether nodes are sources while they are linked, and no longer. Checked in the simulation.
    #[cfg(feature = "planted-bugs")]
    pub fn check(&self) -> Result<(), String> {
        let linked: BTreeSet<NodeIndex> = self.by_address.values().copied().collect();
        match self.nodes.keys().chain(self.walks.keys()).find(|node| !linked.contains(node)) {
            Some(node) => Err(format!("node {node:?} is a source, and is not linked")),
            None => Ok(()),
        }
    }

    /// When there is something to visit, or to tell, without an event.
    pub fn next_visit(&self) -> Option<Monotonic> {
        if !self.walks.is_empty() || !self.changed.is_empty() {
            return Some(Monotonic::default());
        }
        self.looks.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::messages::tenant_budget::paid_at_once_by;

    fn name() -> TopicName {
        TopicName::new("ns", "t")
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    /// Links a node. Returns what it is sent.
    fn link(topics: &mut RemoteTopics, address: &str) -> Receiver<Vec<Subscription>> {
        let (subscriptions, sent) = channel(1);
        topics.link(address.to_owned(), PeerLink { number: 1, subscriptions });
        sent
    }

    /// A turn in which polls want so many items.
    fn turn(topics: &mut RemoteTopics, now: Monotonic, wanted: u32) -> bool {
        topics.visit(now, |_| wanted > 0);
        while let Some(name) = topics.next_changed() {
            topics.want(&name, wanted);
        }
        topics.flush()
    }

    fn subscription(wanted: Option<u32>) -> Vec<Subscription> {
        vec![Subscription { name: name(), wanted, payer: None }]
    }

    #[test]
    fn a_node_that_is_linked_later_hears_of_a_poll_that_waits() {
        let mut topics = RemoteTopics::new(1 << 20);
        topics.ask(&name(), at(0));
        assert!(!turn(&mut topics, at(0), 2));
        let mut sent = link(&mut topics, "a:1");
        assert_eq!(topics.next_visit(), Some(Monotonic::default()), "the next turn comes at once");
        turn(&mut topics, at(1), 2);
        assert_eq!(sent.try_recv().unwrap(), subscription(Some(2)));
        // The link breaks, and there is another one.
        topics.unlink("a:1");
        let mut sent = link(&mut topics, "a:1");
        turn(&mut topics, at(2), 3);
        assert_eq!(sent.try_recv().unwrap(), subscription(Some(3)));
    }

    #[test]
    fn a_node_that_is_linked_later_hears_of_all_topics_though_they_are_polled_meanwhile() {
        const TOPICS: usize = 3 * VISITED_PER_TURN;
        let mut topics = RemoteTopics::new(8 << 20);
        let name = |number| TopicName::new("ns", format!("t{number:04}"));
        (0..TOPICS).for_each(|number| topics.ask(&name(number), at(0)));
        let mut sent = link(&mut topics, "a:1");
        let mut heard = BTreeSet::new();
        // From the second turn on looks are due, so that topics change their places.
        for second in [9, 10, 10, 10, 11, 11, 11, 11] {
            turn(&mut topics, at(second), 1);
            while let Ok(told) = sent.try_recv() {
                heard.extend(told.into_iter().map(|subscription| subscription.name));
                topics.flush();
            }
        }
        assert_eq!(heard.len(), TOPICS);
        assert!(topics.walks.is_empty(), "{:?}", topics.walks);
    }

    #[test]
    fn a_tenant_has_nodes_asked_by_chance_so_often_whatever_it_follows() {
        use rand::{SeedableRng as _, rngs::StdRng};
        let (mut rng, mut topics) = (StdRng::seed_from_u64(1), RemoteTopics::new(2_000));
        let _sent = link(&mut topics, "a:1");
        let most = GUESSES_PER_SECOND.get() as usize;
        let mut asked = |namespace: &str| {
            let name = |number| TopicName::new(namespace, format!("t{number}"));
            (0..2 * most).filter(|number| topics.guess(&name(*number), at(0), &mut rng).is_some()).count()
        };
        assert_eq!([asked("one"), asked("other"), asked("one")], [most, most, 0]);
    }

    #[test]
    fn a_topic_that_nobody_polls_any_more_is_forgotten() {
        let mut topics = RemoteTopics::new(1 << 20);
        let mut sent = link(&mut topics, "a:1");
        topics.ask(&name(), at(0));
        turn(&mut topics, at(0), 1);
        assert_eq!(sent.try_recv().unwrap(), subscription(Some(1)));
        turn(&mut topics, at(10), 1);
        assert_eq!((topics.len(), topics.next_visit()), (1, Some(at(20))), "a poll waits");
        turn(&mut topics, at(20), 0);
        assert_eq!((topics.len(), sent.try_recv().unwrap()), (0, subscription(None)));
        assert_eq!((topics.next_visit(), topics.bytes.used()), (None, 0));
    }

    #[test]
    fn news_wait_for_room_on_the_way_one_a_topic() {
        let mut topics = RemoteTopics::new(1 << 20);
        let mut sent = link(&mut topics, "a:1");
        topics.ask(&name(), at(0));
        turn(&mut topics, at(0), 1);
        topics.mark_changed(&name());
        assert!(turn(&mut topics, at(0), 2), "something is left");
        topics.mark_changed(&name());
        assert!(turn(&mut topics, at(0), 9));
        assert_eq!(sent.try_recv().unwrap(), subscription(Some(1)));
        assert!(!topics.flush());
        assert_eq!(sent.try_recv().unwrap(), subscription(Some(9)), "the newest");
    }

    #[test]
    fn a_tenant_with_one_topic_does_not_wait_behind_another_ones_thousand() {
        let mut topics = RemoteTopics::new(1 << 22);
        let mut sent = link(&mut topics, "a:1");
        for number in 0..1_000 {
            topics.ask(&TopicName::new("many", format!("t{number:04}")), at(number));
        }
        topics.ask(&TopicName::new("zero", "t"), at(999));
        turn(&mut topics, at(999), 1);
        let is_zero = |subscription: &Subscription| subscription.name.namespace.as_ref() == "zero";
        assert!(sent.try_recv().unwrap().iter().any(is_zero));
    }

    #[test]
    fn a_node_that_tells_nothing_is_asked_all_the_same() {
        use rand::{SeedableRng as _, rngs::StdRng};
        let mut rng = StdRng::seed_from_u64(1);
        let mut topics = RemoteTopics::new(3_000);
        let mut sent = link(&mut topics, "a:1");
        topics.ask(&name(), at(0));
        turn(&mut topics, at(0), 1);
        assert_eq!(sent.try_recv().unwrap(), subscription(Some(1)));
        assert!(!topics.has_silent(&name(), at(0)), "its first words are waited for");
        // It has no room for another follower.
        let node = topics.guess(&name(), at(1), &mut rng).unwrap();
        topics.fetched(&name(), node, Some(ReadyState::default()));
        assert!(topics.has_silent(&name(), at(1)), "what it says once does not last");
        turn(&mut topics, at(1), 1);
        assert_eq!(sent.try_recv().unwrap(), subscription(Some(1)), "it may have room by now");
        let told = TopicHead { name: name(), state: ReadyState::default(), offered: 0 };
        assert!(topics.take_in("a:1", &told) && !topics.has_silent(&name(), at(1)));

        let unfollowed = TopicName::new("ns", "u");
        topics.ask(&unfollowed, at(1));
        assert_eq!(
            (topics.len(), topics.guess(&unfollowed, at(1), &mut rng)),
            (1, Some(node)),
            "no room here"
        );
        topics.was_late(&unfollowed, node, at(1));
        assert_eq!(topics.guess(&unfollowed, at(1), &mut rng), None);
    }

    #[test]
    fn a_tenant_follows_so_many_topics_and_no_more() {
        let mut topics = RemoteTopics::new(5_000);
        for number in 0..100 {
            topics.ask(&TopicName::new("ns", format!("t{number}")), at(0));
        }
        assert_eq!(topics.len(), 2, "a quarter");
        topics.ask(&TopicName::new("other", "t"), at(0));
        assert_eq!(topics.len(), 3);
    }

    #[test]
    fn other_nodes_hear_who_pays_for_a_topic() {
        let mut topics = RemoteTopics::new(5_000);
        let mut sent = link(&mut topics, "a:1");
        paid_at_once_by(Some("acme".into()), || topics.ask(&name(), at(0)));
        turn(&mut topics, at(0), 1);
        assert_eq!(sent.try_recv().unwrap()[0].payer.as_deref(), Some("acme"));
    }
}
