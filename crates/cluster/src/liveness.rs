//! Which nodes live: those whose counters move, as one observer sees them on its own clock.
//!
//! Only time that the observer has watched counts against a node. When the catalog was out of reach, or the
//! observer itself stood still, it knows nothing of that time: nobody could beat, or nobody looked.

use std::{collections::BTreeMap, time::Duration};

use forebay_store::{CatalogNode, Sighting};
use forebay_types::{Monotonic, NodeName};

/// A node is seen standing still at least so often before it is called dead.
const LOOKS_MIN: u32 = 3;

/// Watches the counters of all nodes.
#[derive(Debug, Clone)]
pub struct Liveness {
    /// A node is dead once its counter has been watched standing still for so long.
    timeout: Duration,
    /// When the catalog was last read.
    looked_at: Option<Monotonic>,
    /// The signs of life of each node.
    nodes: BTreeMap<NodeName, WatchedNode>,
}

#[derive(Debug, Clone)]
struct WatchedNode {
    last: Sighting,
    /// How long the counter has been watched standing still.
    still_for: Duration,
    joined_since: Monotonic,
    restarts: u64,
}

impl Liveness {
    /// Nodes live while their counters move within `timeout`, which should be several beats.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, looked_at: None, nodes: BTreeMap::new() }
    }

    /// Takes in what was read from the catalog just now. A node that is seen for the first time lives until
    /// its counter has stood still for long enough: nothing is known against it.
    pub fn observe(&mut self, nodes: &[CatalogNode], now: Monotonic) {
        let since_last = self.looked_at.map_or(Duration::ZERO, |at| now.since(at));
        let watched_for = since_last.min(self.timeout / LOOKS_MIN);
        self.looked_at = Some(now);
        self.nodes.retain(|name, _| nodes.iter().any(|node| node.name == *name));
        for node in nodes {
            let sighting = Sighting { incarnation: node.incarnation, beats: node.beats };
            match self.nodes.get_mut(&node.name) {
                Some(watched) => watched.look(sighting, watched_for, self.timeout, now),
                None => {
                    let first = WatchedNode {
                        last: sighting,
                        still_for: Duration::ZERO,
                        joined_since: now,
                        restarts: 0,
                    };
                    self.nodes.insert(node.name.clone(), first);
                }
            }
        }
    }

    /// Whether a node lives, as of the last look at the catalog.
    pub fn is_live(&self, name: &NodeName) -> bool {
        self.nodes.get(name).is_some_and(|watched| watched.still_for < self.timeout)
    }

    /// Whether a node's counter has stood still for half of what makes it dead. Observers look at different
    /// times: another one may call it dead already.
    pub fn is_late(&self, name: &NodeName) -> bool {
        self.nodes.get(name).is_some_and(|watched| watched.still_for >= self.timeout / 2)
    }

    /// Since when a node's process has lived without a break, as far as this observer knows.
    pub fn joined_since(&self, name: &NodeName) -> Option<Monotonic> {
        self.nodes.get(name).map(|watched| watched.joined_since)
    }

    /// How often another process took a node's name, as far as this observer knows.
    pub fn restarts(&self, name: &NodeName) -> u64 {
        self.nodes.get(name).map_or(0, |watched| watched.restarts)
    }

    /// The dead process that has a name. A process that wants the name says that it expects this one.
    pub fn dead(&self, name: &NodeName) -> Option<Sighting> {
        self.nodes.get(name).filter(|watched| watched.still_for >= self.timeout).map(|watched| watched.last)
    }
}

impl WatchedNode {
    fn look(&mut self, now_is: Sighting, watched_for: Duration, timeout: Duration, now: Monotonic) {
        if now_is == self.last {
            self.still_for += watched_for;
            return;
        }
        let is_other_process = now_is.incarnation != self.last.incarnation;
        if is_other_process || self.still_for >= timeout {
            self.joined_since = now;
        }
        self.restarts += u64::from(is_other_process);
        (self.last, self.still_for) = (now_is, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    const TIMEOUT: Duration = Duration::from_secs(3);

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    fn name() -> NodeName {
        "a".parse().unwrap()
    }

    fn node(process: u8, beats: u64) -> CatalogNode {
        testing::node("a", process, beats)
    }

    #[test]
    fn a_node_lives_while_its_counter_moves() {
        let mut liveness = Liveness::new(TIMEOUT);
        assert!(!liveness.is_live(&name()));
        (0..10).for_each(|second| liveness.observe(&[node(1, second)], at(second)));
        assert!(liveness.is_live(&name()));
        assert_eq!(liveness.joined_since(&name()), Some(at(0)));
        assert!(!liveness.is_late(&name()));
        for (second, late, live) in [(10, false, true), (11, true, true), (12, true, false)] {
            liveness.observe(&[node(1, 9)], at(second));
            assert_eq!((liveness.is_late(&name()), liveness.is_live(&name())), (late, live), "{second}");
        }
        assert_eq!(liveness.dead(&name()).unwrap().beats, 9);
    }

    #[test]
    fn a_node_that_comes_back_has_joined_anew() {
        let mut liveness = Liveness::new(TIMEOUT);
        (0..5).for_each(|second| liveness.observe(&[node(1, 1)], at(second)));
        assert!(!liveness.is_live(&name()));
        liveness.observe(&[node(1, 2)], at(5));
        assert_eq!((liveness.is_live(&name()), liveness.restarts(&name())), (true, 0));
        assert_eq!((liveness.joined_since(&name()), liveness.dead(&name())), (Some(at(5)), None));
    }

    #[test]
    fn another_process_has_joined_anew() {
        let mut liveness = Liveness::new(TIMEOUT);
        liveness.observe(&[node(1, 1)], at(0));
        liveness.observe(&[node(2, 2)], at(1));
        assert_eq!((liveness.joined_since(&name()), liveness.restarts(&name())), (Some(at(1)), 1));
    }

    #[test]
    fn a_node_that_left_is_forgotten() {
        let mut liveness = Liveness::new(TIMEOUT);
        liveness.observe(&[node(1, 1)], at(0));
        liveness.observe(&[], at(1));
        assert_eq!((liveness.is_live(&name()), liveness.joined_since(&name())), (false, None));
    }

    #[test]
    fn time_without_a_look_counts_against_nobody() {
        let mut liveness = Liveness::new(TIMEOUT);
        liveness.observe(&[node(1, 1)], at(0));
        // The catalog was away for a minute: nobody could beat.
        liveness.observe(&[node(1, 1)], at(60));
        assert!(liveness.is_live(&name()));
        liveness.observe(&[node(1, 2)], at(61));
        assert_eq!(liveness.joined_since(&name()), Some(at(0)));
    }
}
