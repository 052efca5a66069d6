//! Dequeue calls that have no answer yet.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use forebay_types::{ItemId, Monotonic, TopicName};
use rustc_hash::FxHashMap;

use crate::{
    api::{DeliveredItem, DequeueCall},
    index::ShardIndex,
    messages::{
        delivery_guard::{DeliveryGuard, ReturnAction},
        reply::Reply,
        tenant_budget::{Charge, payer},
    },
    shard::work::{ShardLease, WaitingPoll},
};

/// After so many fetches in a row that found nothing a poll waits for news.
const EMPTY_FETCHES_MAX: u32 = 3;

/// How often a poll that waits has nodes asked that tell nothing of its topics.
pub(crate) const GUESS_EVERY: Duration = Duration::from_secs(1);

/// A dequeue call.
pub(crate) struct Poll {
    /// The call.
    pub call: Arc<DequeueCall>,
    /// The topics, in the order of the demands.
    pub names: Arc<[TopicName]>,
    /// Receives the answer.
    pub reply: Reply<DeliveryGuard>,
    /// Until when it waits.
    pub until: Monotonic,
    /// Leases under way for it; `None` while it waits.
    pub leases: Option<LeasesUnderWay>,
    /// Fetches in a row that found nothing.
    pub empty_fetches: u32,
    /// Nodes that tell nothing of its topics may be asked from then on.
    pub guesses_from: Monotonic,
    /// The charge of a call that waits. Released with the poll.
    pub _charge: Option<Charge>,
    /// The payer of what the node keeps for it. `None`: the namespace.
    pub payer: Option<Arc<str>>,
}

impl Poll {
    /// Has no leases yet. Its payer is that of the task.
    pub fn new(call: DequeueCall, reply: Reply<DeliveryGuard>, until: Monotonic) -> Self {
        let names = call.topic_names().into();
        let (call, guesses_from, payer) = (Arc::new(call), Monotonic::default(), payer());
        Self { call, names, reply, until, leases: None, empty_fetches: 0, guesses_from, _charge: None, payer }
    }

    /// For how long it has waited.
    pub fn waited(&self, at: Monotonic) -> Duration {
        (self.call.wait + at.since(self.until)).saturating_sub(self.until.since(at))
    }

    /// How many items of a topic it would take, if it waits.
    pub fn wants(&self, name: &TopicName) -> Option<usize> {
        let demand = self.call.demands.iter().find(|demand| demand.topic == name.topic)?;
        (self.leases.is_none() && !self.reply.is_closed()).then_some(demand.max_items)
    }

    /// Its demand for a topic or a prefix, if it waits.
    pub fn waiting(&self, id: u64, name: &TopicName) -> Option<WaitingPoll> {
        let max_items = self.wants(name)?;
        let DequeueCall { namespace, lease, consumer, max_bytes, .. } = &*self.call;
        let (namespace, consumer) = (namespace.clone(), consumer.clone());
        let (lease, items) = (*lease, Vec::new());
        let lease = ShardLease { poll: id, namespace, lease, consumer, is_fetch: false, items };
        Some(WaitingPoll { max_items, max_bytes: *max_bytes, lease })
    }
}

/// An item that is leased for a poll and not handed over yet.
pub(crate) struct LeasedItem {
    /// The position of its demand in the poll.
    pub demand: usize,
    /// The item as the caller is given it.
    pub delivered: DeliveredItem,
    /// How it is returned if nobody receives it.
    pub on_return: ReturnAction,
    /// Until when it may be handed out, if another node has leased it: times of its shard say nothing here.
    pub ends_at: Option<Monotonic>,
}

impl LeasedItem {
    /// Its place in the answer: by demand, then in delivery order.
    pub fn place(&self) -> (usize, i32, i64, ItemId) {
        (self.demand, self.delivered.priority, self.delivered.rank, self.delivered.id)
    }
}

/// Where a part of an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Share {
    /// A shard of this node.
    Shard(ShardIndex),
    /// A fetch from another node.
    Fetch(u64),
}

/// Leases under way for a poll.
pub(crate) struct LeasesUnderWay {
    /// Shares that have not ended.
    pub left: usize,
    /// Shares that take at-most-once items: never late, the answer waits for them.
    pub at_most_once: BTreeSet<Share>,
    /// The items that are leased so far.
    pub items: Vec<LeasedItem>,
    /// Something that was reserved expired before it could be leased, or its shard was lost. There may be
    /// something else.
    pub look_again: bool,
    /// When the rest is not waited for any more. Set by the first share that ends with items.
    pub late_at: Option<Monotonic>,
}

impl LeasesUnderWay {
    /// Of `left` shares, of which `at_most_once` take at-most-once items.
    pub fn new(left: usize, at_most_once: BTreeSet<Share>) -> Self {
        Self { left, at_most_once, items: Vec::new(), look_again: false, late_at: None }
    }

    /// The rest is late, and need not be waited for.
    pub fn is_late(&self, at: Monotonic) -> bool {
        self.late_at.is_some_and(|late| late <= at) && self.at_most_once.is_empty()
    }
}

/// All dequeue calls without an answer.
#[derive(Default)]
pub(crate) struct Polls(FxHashMap<u64, Poll>);

impl Polls {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, id: u64, poll: Poll) {
        self.0.insert(id, poll);
    }

    pub fn get(&self, id: u64) -> Option<&Poll> {
        self.0.get(&id)
    }

    /// All polls, by their numbers.
    #[cfg(feature = "planted-bugs")]
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Poll)> {
        self.0.iter().map(|(id, poll)| (*id, poll))
    }

    /// The leases under way for a poll.
    pub fn leases_mut(&mut self, id: u64) -> Option<&mut LeasesUnderWay> {
        self.0.get_mut(&id)?.leases.as_mut()
    }

    /// Leases are under way for a poll, or no more.
    pub fn set_leases(&mut self, id: u64, leases: Option<LeasesUnderWay>) {
        if let Some(poll) = self.0.get_mut(&id) {
            poll.leases = leases;
        }
    }

    /// A fetch for a poll found nothing. Returns whether the poll looks again at once: it has not done so for
    /// too long. Otherwise it does so again after a second.
    pub fn found_nothing(&mut self, id: u64, at: Monotonic) -> bool {
        let Some(poll) = self.0.get_mut(&id) else { return false };
        if poll.empty_fetches >= EMPTY_FETCHES_MAX && at >= poll.guesses_from {
            poll.empty_fetches = 0;
        }
        poll.empty_fetches += 1;
        if poll.empty_fetches == EMPTY_FETCHES_MAX {
            poll.guesses_from = at.plus(GUESS_EVERY);
        }
        poll.empty_fetches < EMPTY_FETCHES_MAX
    }

    pub fn remove(&mut self, id: u64) -> Option<Poll> {
        self.0.remove(&id)
    }

    /// The numbers of all polls.
    pub fn ids(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Demand;

    fn at(ms: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(ms))
    }

    /// A poll for three items of topic `t`.
    fn poll(reply: Reply<DeliveryGuard>) -> Poll {
        let call = DequeueCall {
            namespace: "ns".into(),
            demands: vec![Demand { topic: "t".into(), max_items: 3 }],
            consumer: "consumer".into(),
            max_bytes: 10,
            ..DequeueCall::default()
        };
        Poll::new(call, reply, at(0))
    }

    #[test]
    fn a_poll_has_waited_since_it_came_also_beyond_its_end() {
        let call = DequeueCall { wait: Duration::from_millis(100), ..DequeueCall::default() };
        let poll = Poll::new(call, Reply::channel().0, at(150));
        let waited = [50, 80, 150, 170].map(|ms| poll.waited(at(ms)).as_millis());
        assert_eq!(waited, [0, 30, 100, 120]);
    }

    #[test]
    fn a_poll_waits_for_the_topics_that_it_asked_for() {
        let (reply, _answer) = Reply::channel();
        let poll = poll(reply);
        let waiting = poll.waiting(7, &TopicName::new("ns", "t")).unwrap();
        assert_eq!((waiting.max_items, waiting.max_bytes, waiting.lease.poll), (3, 10, 7));
        assert!(poll.waiting(7, &TopicName::new("ns", "u")).is_none());
    }

    #[test]
    fn a_poll_that_is_served_or_was_left_does_not_wait() {
        let (reply, answer) = Reply::channel();
        let mut polls = Polls::default();
        polls.insert(7, poll(reply));
        let waits = |polls: &Polls| polls.get(7).unwrap().waiting(7, &TopicName::new("ns", "t")).is_some();
        polls.set_leases(7, Some(LeasesUnderWay::new(1, BTreeSet::new())));
        assert!(!waits(&polls) && polls.leases_mut(7).is_some());
        polls.set_leases(7, None);
        assert!(waits(&polls) && polls.leases_mut(7).is_none());
        drop(answer);
        assert!(!waits(&polls));
        assert!(polls.remove(7).is_some() && polls.is_empty());
    }

    #[test]
    fn the_rest_of_an_answer_is_late_unless_it_takes_at_most_once_items() {
        let mut leases = LeasesUnderWay::new(2, BTreeSet::from([Share::Shard(ShardIndex(0))]));
        assert!(!leases.is_late(at(99)), "no shard has answered");
        leases.late_at = Some(at(10));
        assert!(!leases.is_late(at(99)));
        leases.at_most_once.clear();
        assert!(!leases.is_late(at(9)) && leases.is_late(at(10)));
    }
}
