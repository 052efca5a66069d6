//! A topic that other nodes follow.

use std::{collections::BTreeMap, ops::Bound, time::Duration};

use forebay_types::Monotonic;

use crate::{
    api::ReadyState,
    messages::tenant_budget::Charge,
    planted::{Bug, on},
};

/// Nodes hear of a change within this time. Until then most changes have passed: an item was offered, and is
/// leased.
const TOLD_AFTER: Duration = Duration::from_millis(100);
/// An offer lapses after this time, and with it what the node wanted.
const OFFERED_FOR: Duration = Duration::from_millis(100);
/// A change of the best item's rank by less than this is none, in microseconds.
const SAME_RANK: u64 = 250_000;

/// A topic.
#[derive(Debug, Default)]
pub(super) struct WatchedTopic {
    /// The nodes that follow it, by the numbers of their links.
    subscribers: BTreeMap<u64, Subscriber>,
    /// The node that was offered something last.
    last_served: u64,
    /// Since when some node has not heard of a change.
    changed_at: Option<Monotonic>,
    /// When it is to be looked at again.
    pub due: Option<Monotonic>,
}

/// A node that follows a topic.
#[derive(Debug)]
struct Subscriber {
    /// Items that its polls wait for.
    wanted: u32,
    /// Items that it is offered, and until when.
    offered: Option<(u32, Monotonic)>,
    /// The last news that it has heard. `None`: nothing yet.
    heard: Option<ReadyState>,
    /// Its bytes.
    _charge: Charge,
}

impl Subscriber {
    /// When its offer lapses.
    fn lapses_at(&self) -> Option<Monotonic> {
        self.offered.map(|(_, until)| until).filter(|_| !on(Bug::OfferStays))
    }
}

impl WatchedTopic {
    /// A node wants so many items from now on. Returns whether it follows the topic.
    pub fn wants(&mut self, number: u64, wanted: u32) -> bool {
        let Some(subscriber) = self.subscribers.get_mut(&number) else { return false };
        subscriber.wanted = wanted;
        if wanted == 0 {
            subscriber.offered = None;
        }
        true
    }

    /// A node follows it from now on.
    pub fn begin(&mut self, number: u64, wanted: u32, charge: Charge) {
        self.subscribers.insert(number, Subscriber { wanted, offered: None, heard: None, _charge: charge });
    }

    /// A node follows it no more.
    pub fn end(&mut self, number: u64) {
        self.subscribers.remove(&number);
    }

    /// No node follows it.
    pub fn is_unused(&self) -> bool {
        self.subscribers.is_empty()
    }

    /// How many nodes want items, or are offered some.
    pub fn wanting(&self) -> usize {
        let wants = |it: &&Subscriber| it.wanted > 0 || it.offered.is_some();
        self.subscribers.values().filter(wants).count()
    }

    /// A node has answered its offer.
    pub fn answered(&mut self, number: u64) {
        if let Some(subscriber) = self.subscribers.get_mut(&number) {
            subscriber.offered = None;
        }
    }

    /// A node has just heard this.
    pub fn heard(&mut self, number: u64, state: ReadyState) {
        if let Some(subscriber) = self.subscribers.get_mut(&number) {
            subscriber.heard = Some(state);
        }
    }

    /// Its ready items are these. Returns the nodes that are to be told, and how many items each of them is
    /// offered.
    pub fn look(&mut self, state: ReadyState, at: Monotonic) -> BTreeMap<u64, u32> {
        let mut news = self.offer(state, at);
        let is_due = self.changed_at.is_some_and(|since| since.plus(TOLD_AFTER) <= at);
        let mut left = false;
        for (number, subscriber) in &mut self.subscribers {
            if news.contains_key(number) {
                continue;
            }
            match subscriber.heard {
                Some(heard) if !differ(heard, state) => continue,
                Some(_) if !is_due => left = true,
                Some(_) | None => {
                    news.insert(*number, 0);
                }
            }
        }
        self.changed_at = left.then(|| self.changed_at.unwrap_or(at));
        for number in news.keys() {
            if let Some(subscriber) = self.subscribers.get_mut(number) {
                subscriber.heard = Some(state);
            }
        }
        news
    }

    /// Offers items to the nodes that want some, in turn. Each item is offered to one of them.
    fn offer(&mut self, state: ReadyState, at: Monotonic) -> BTreeMap<u64, u32> {
        let mut news = BTreeMap::new();
        let mut left = state.ready;
        for subscriber in self.subscribers.values_mut() {
            if subscriber.lapses_at().is_some_and(|until| until <= at) {
                subscriber.offered = None;
            }
            let offered = subscriber.offered.filter(|_| !on(Bug::OfferedTwice));
            left = left.saturating_sub(offered.map_or(0, |(items, _)| items));
        }
        if left == 0 || on(Bug::NothingOffered) {
            return news;
        }
        let (behind, before) = (Bound::Excluded(self.last_served), Bound::Included(self.last_served));
        let numbers = self.subscribers.range((behind, Bound::Unbounded));
        let numbers: Vec<u64> = numbers
            .chain(self.subscribers.range((Bound::Unbounded, before)))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            let Some(subscriber) = self.subscribers.get_mut(&number) else { continue };
            let items = subscriber.wanted.min(left);
            if items == 0 {
                continue;
            }
            let before = subscriber.offered.map_or(0, |(items, _)| items);
            (subscriber.wanted, subscriber.offered) = (0, Some((before + items, at.plus(OFFERED_FOR))));
            self.last_served = number;
            news.insert(number, items);
            left -= if on(Bug::OfferedTwice) { 0 } else { items };
            if left == 0 {
                break;
            }
        }
        news
    }

    /// When it is to be looked at without an event: nodes are to hear of a change, or an offer lapses.
    pub fn next_look(&self) -> Option<Monotonic> {
        let lapses = self.subscribers.values().filter_map(Subscriber::lapses_at);
        lapses.chain(self.changed_at.map(|since| since.plus(TOLD_AFTER))).min()
    }
}

/// Whether a change is worth telling: another priority, another rank, or half or twice as many items, or
/// items of a round.
fn differ(heard: ReadyState, now: ReadyState) -> bool {
    match (heard.head, now.head) {
        (None, None) => false,
        (Some(old), Some(new)) => {
            let is_half = |one: u32, other: u32| one.max(other) / 2 >= one.min(other).max(1);
            old.priority != new.priority
                || old.rank.abs_diff(new.rank) >= SAME_RANK
                || is_half(heard.ready, now.ready)
                || is_half(heard.round, now.round)
        }
        (None, Some(_)) | (Some(_), None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::HeadPosition, messages::tenant_budget::TenantBudget};

    fn at(ms: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(ms))
    }

    fn ready(ready: u32, priority: i32, rank: i64) -> ReadyState {
        ReadyState { head: Some(HeadPosition { priority, rank }), ready, round: 0 }
    }

    /// Followed by nodes that want so many items each.
    fn followed(wanted: &[u32]) -> WatchedTopic {
        let (budget, mut topic) = (TenantBudget::new(1_000), WatchedTopic::default());
        for (number, wanted) in (1..).zip(wanted) {
            topic.begin(number, *wanted, budget.take(&"ns".into(), 1).unwrap());
        }
        topic
    }

    #[test]
    fn each_item_is_offered_to_one_node_in_turn() {
        let mut topic = followed(&[1, 2, 1]);
        assert_eq!(topic.look(ready(2, 0, 0), at(0)), BTreeMap::from([(1, 1), (2, 1), (3, 0)]));
        assert!(topic.look(ready(2, 0, 0), at(1)).is_empty(), "all are offered, and all have heard");
        assert_eq!(topic.look(ready(3, 0, 0), at(2)), BTreeMap::from([(3, 1)]), "it is its turn");
        // The first has taken its item, and wants one more.
        topic.answered(1);
        assert!(topic.wants(1, 1));
        assert_eq!(topic.look(ready(3, 0, 0), at(3)), BTreeMap::from([(1, 1)]));
    }

    #[test]
    fn an_offer_lapses_and_with_it_what_the_node_wanted() {
        let mut topic = followed(&[1, 0]);
        assert_eq!(topic.wanting(), 1);
        assert_eq!(topic.look(ready(1, 0, 0), at(0))[&1], 1);
        assert!(topic.wants(2, 1));
        assert_eq!(topic.wanting(), 2, "one has an offer, the other one wants something");
        assert!(topic.look(ready(1, 0, 0), at(99)).is_empty(), "it is offered to the first still");
        assert_eq!(topic.next_look(), Some(at(100)));
        assert_eq!(topic.look(ready(1, 0, 0), at(100)), BTreeMap::from([(2, 1)]));
        assert!(topic.look(ready(1, 0, 0), at(300)).is_empty(), "nobody wants any");
    }

    #[test]
    fn a_node_that_declines_leaves_the_item_to_others_at_once() {
        let mut topic = followed(&[1, 1]);
        assert_eq!(topic.look(ready(1, 0, 0), at(0))[&1], 1);
        assert!(topic.wants(1, 0));
        assert_eq!(topic.look(ready(1, 0, 0), at(1)), BTreeMap::from([(2, 1)]));
    }

    #[test]
    fn a_change_is_told_a_little_later_and_not_if_it_has_passed() {
        let mut topic = followed(&[0]);
        assert_eq!(topic.look(ReadyState::default(), at(0)), BTreeMap::from([(1, 0)]), "the first news");
        assert!(topic.look(ready(1, 0, 0), at(10)).is_empty());
        assert_eq!(topic.next_look(), Some(at(110)));
        assert!(topic.look(ReadyState::default(), at(20)).is_empty() && topic.next_look().is_none());
        assert!(topic.look(ready(1, 0, 0), at(30)).is_empty());
        assert_eq!(topic.look(ready(1, 0, 0), at(130)), BTreeMap::from([(1, 0)]));
        assert_eq!(topic.next_look(), None);
    }

    #[test]
    fn small_changes_are_no_news() {
        let of = |ready_items, rank| ready(ready_items, 0, rank);
        assert!(!differ(of(10, 0), of(19, 249_999)) && !differ(of(10, 0), of(6, 0)));
        assert!(
            differ(of(10, 0), of(20, 0)) && differ(of(10, 0), of(5, 0)) && differ(of(1, 0), of(1, 250_000))
        );
        assert!(differ(of(1, 0), ready(1, 1, 0)) && differ(of(1, 0), ReadyState::default()));
        let round = |round| ReadyState { round, ..of(10, 0) };
        assert!(differ(round(4), round(8)) && !differ(round(4), round(7)));
    }
}
