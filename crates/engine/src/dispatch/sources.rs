//! Other nodes as sources of the merge: which of them has the best item of a topic, and what they are to know
//! of the polls that wait here.

use std::{cmp::Ordering, time::Duration};

use forebay_types::{Monotonic, TopicName};
use rand::{Rng, RngExt};

use crate::{
    api::HeadPosition,
    core::{Core, policies::Eligible, polls::GUESS_EVERY, remote::Source, timers::Timer},
    index::NodeIndex,
    planted::{Bug, on},
};

/// Ranks of different nodes that are closer than this are equal, in microseconds.
const SAME_RANK: i64 = 500_000;
/// Items that are wanted of a topic, at most.
const WANTED_MAX: usize = 1_000;
/// Polls of a topic whose demands are added up. The others count as one item each.
const POLLS_ADDED_UP: usize = 256;
/// A node whose offer was declined hears after this time what is wanted all the same.
const WANTED_AGAIN_AFTER: Duration = Duration::from_millis(20);
/// Topics of one look for which nodes are asked that tell nothing of them.
const GUESSED_TOPICS: usize = 4;
/// Of so many looks one asks such a node first, where others have items.
const GUESSED_BEFORE_KNOWN: u32 = 8;

/// A look of a poll, as far as it matters for nodes that tell nothing of a topic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guesses {
    /// When it is.
    pub at: Monotonic,
    /// Such nodes may be asked from then on.
    pub from: Monotonic,
    /// How many topics it polls.
    pub topics: usize,
}

/// The best source of a topic.
#[derive(Debug, Clone, Copy)]
pub(super) struct BestSource {
    /// The node.
    pub node: NodeIndex,
    /// About how many items it has.
    pub ready: usize,
    /// The best item of all nodes. Its own best one is as good.
    first: HeadPosition,
    /// The best item of the others.
    others: Option<HeadPosition>,
    /// Of a prefix: the items of a round of all nodes that have as good ones.
    round: u64,
}

impl BestSource {
    /// Its items come before the best one of this node's shards.
    pub fn comes_before(&self, own: Option<HeadPosition>) -> bool {
        own.is_none_or(|own| own >= after(self.first))
    }

    /// Its items of a prefix come now. `own`: the best priority in this node's shards, and the items of its
    /// round there. Of equal nodes each has its part.
    pub fn has_turn(&self, own: Option<(i32, u64)>, rng: &mut impl Rng) -> bool {
        let Some((priority, round)) = own else { return true };
        match priority.cmp(&self.first.priority) {
            Ordering::Less => false,
            Ordering::Equal => rng.random_range(0..round.saturating_add(self.round).max(1)) < self.round,
            Ordering::Greater => true,
        }
    }

    /// The item before which its items are to be had, if the best one of this node's shards is `own`.
    pub fn before(&self, own: Option<HeadPosition>) -> Option<HeadPosition> {
        self.others.into_iter().chain(own).min().map(after)
    }
}

/// The node that has the best item of a topic, of all others. Of nodes that are equal each is taken as often
/// as it has items: all fronts would go to the first.
pub(super) fn best(core: &mut Core, name: &TopicName, guesses: Guesses) -> Option<BestSource> {
    if !core.remote.has_nodes() {
        return None;
    }
    let known = best_known(core, name, guesses.at);
    if !core.remote.has_silent(name, guesses.at) || on(Bug::NothingGuessed) {
        return known;
    }
    // A node that tells nothing has its turn while others have items without end.
    if known.is_some() && !core.rng.random_ratio(1, GUESSED_BEFORE_KNOWN) {
        return known;
    }
    guess(core, name, guesses, known.map(|known| known.first)).or(known)
}

fn best_known(core: &mut Core, name: &TopicName, at: Monotonic) -> Option<BestSource> {
    let mut later = None;
    let mut sources = core.remote.sources(name, at, &mut later);
    if let Some(later) = later {
        core.timers.set(later, Timer::Topic(name.clone()));
    }
    let head = |source: &Source| source.state.and_then(|state| state.head);
    let first = sources.iter().filter_map(head).min()?;
    let ready = |source: &Source| source.state.map_or(0, |state| state.ready as usize);
    let equal = |source: &Source| head(source).is_some_and(|head| head < after(first));
    let round = |source: &Source| source.state.map_or(0, |state| state.round as usize);
    // Each topic of a prefix has its turn, however many items it has.
    let part = |source: &Source| if name.prefix().is_some() { round(source) } else { ready(source) };
    let all: usize = sources.iter().filter(|source| equal(source)).map(part).sum();
    let mut left = core.rng.random_range(0..all.max(1));
    let chosen = sources.iter().position(|source| {
        let mine = if equal(source) { part(source) } else { 0 };
        let is_it = left < mine;
        left = left.saturating_sub(mine);
        is_it
    })?;
    let round = sources.iter().filter(|source| equal(source)).map(round).sum::<usize>() as u64;
    let chosen = sources.swap_remove(chosen);
    let others = sources.iter().filter_map(head).min();
    Some(BestSource { node: chosen.node, ready: ready(&chosen), first, others, round })
}

/// One of the nodes that tell nothing of a topic, by chance. It may have items of any priority. `others`: the
/// best item of those that tell.
fn guess(
    core: &mut Core,
    name: &TopicName,
    Guesses { at, from, topics }: Guesses,
    others: Option<HeadPosition>,
) -> Option<BestSource> {
    // So each of many topics has its turn.
    let has_turn = core.rng.random_range(0..topics.max(1)) < GUESSED_TOPICS;
    let node = if at >= from && has_turn { core.remote.guess(name, at, &mut core.rng) } else { None };
    let Some(node) = node else {
        core.timers.set(from.max(at.plus(GUESS_EVERY)), Timer::Topic(name.clone()));
        return None;
    };
    let first = HeadPosition { priority: i32::MIN, rank: i64::MIN };
    Some(BestSource { node, ready: usize::MAX, first, others, round: 0 })
}

/// An item behind this one comes after `head` for certain.
const fn after(head: HeadPosition) -> HeadPosition {
    HeadPosition { priority: head.priority, rank: head.rank.saturating_add(SAME_RANK) }
}

/// Whether what other nodes say of a topic has to be waited for.
pub(crate) fn is_outstanding(core: &mut Core, name: &TopicName) -> bool {
    if !core.remote.has_nodes() {
        return false;
    }
    let at = core.time.monotonic();
    let Some(until) = core.remote.unknown_until(name, at) else { return false };
    core.timers.set(until, Timer::Topic(name.clone()));
    true
}

/// Tells other nodes for how many items of each topic polls wait, where that has changed. It takes at most
/// `limit`; the rest waits for the next turn.
pub(crate) fn tell_wanted(core: &mut Core, limit: Duration) {
    let at = core.time.monotonic();
    let topics = &core.topics;
    core.remote.visit(at, |name| topics.waiting_count(name) > 0);
    while let Some(name) = core.remote.next_changed() {
        let wanted = wanted(core, &name);
        if core.remote.want(&name, wanted) {
            core.timers.set(at.plus(WANTED_AGAIN_AFTER), Timer::Topic(name));
        }
        if core.time.monotonic() >= at.plus(limit) {
            return;
        }
    }
}

/// How many items of a topic polls wait for.
fn wanted(core: &Core, name: &TopicName) -> u32 {
    if core.policies.eligible(name) != Eligible::All {
        return 0;
    }
    let polls = core.topics.waiting(name).take(POLLS_ADDED_UP);
    let demands = polls.filter_map(|id| core.polls.get(id)?.wants(name));
    let others = core.topics.waiting_count(name).saturating_sub(POLLS_ADDED_UP);
    (demands.sum::<usize>() + others).min(WANTED_MAX) as u32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::{api::PeerLink, core::testing::SlowClock};

    #[test]
    fn what_is_wanted_of_many_topics_is_told_in_several_turns() {
        let mut core = Core::for_test_with(Arc::new(SlowClock::default()));
        let (subscriptions, mut sent) = channel(16);
        core.remote.link("a:1".to_owned(), PeerLink { number: 1, subscriptions });
        for number in 0..100 {
            let at = Monotonic::from_start(Duration::from_secs(number));
            core.remote.ask(&TopicName::new("ns", format!("t{number}")), at);
        }
        let told = |core: &mut Core, sent: &mut tokio::sync::mpsc::Receiver<_>| {
            tell_wanted(core, Duration::from_millis(10));
            core.remote.flush();
            std::iter::from_fn(|| sent.try_recv().ok()).flatten().collect::<Vec<_>>().len()
        };
        assert_eq!(told(&mut core, &mut sent), 10);
        assert_eq!(core.remote.next_visit(), Some(Monotonic::default()), "the next turn comes at once");
        let all: usize = (0..9).map(|_| told(&mut core, &mut sent)).sum();
        assert_eq!(all, 90);
        assert!(core.remote.next_visit() > Some(Monotonic::default()), "there is nothing to be told");
    }
}
