//! How long each shard has had its home, as one observer saw it on its own clock.

use std::{collections::BTreeMap, time::Duration};

use forebay_store::Assignment;
use forebay_types::{Monotonic, NodeName, ShardId};

/// A home that followed another within this time is left alone for as long. Two nodes that take each other
/// for dead would otherwise take each shard from each other as fast as the catalog answers.
const SETTLES_AFTER: Duration = Duration::from_secs(3);

/// Since when each shard has had its home. What an observer sees first may have changed just before, so it
/// counts as changed at that moment.
#[derive(Debug, Clone, Default)]
pub struct HomeAges(BTreeMap<ShardId, Age>);

#[derive(Debug, Clone)]
struct Age {
    home: NodeName,
    since: Monotonic,
    /// The home before this one had the shard for a short time only.
    hasty: bool,
}

impl HomeAges {
    /// Takes in what was read from the catalog just now.
    pub fn observe(&mut self, assignment: &Assignment, now: Monotonic) {
        self.0.retain(|id, _| assignment.homes.contains_key(id));
        for (id, home) in &assignment.homes {
            let new = |hasty| Age { home: home.node.clone(), since: now, hasty };
            let age = self.0.entry(*id).or_insert_with(|| new(false));
            if age.home != home.node {
                *age = new(now.since(age.since) < SETTLES_AFTER);
            }
        }
    }

    /// Since when a shard has had its home.
    pub fn since(&self, id: ShardId) -> Option<Monotonic> {
        self.0.get(&id).map(|age| age.since)
    }

    /// Whether a shard's home has changed twice in a short time, the last time not long ago.
    pub fn settles(&self, id: ShardId, now: Monotonic) -> bool {
        self.0.get(&id).is_some_and(|age| age.hasty && now.since(age.since) < SETTLES_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::Home;

    use super::*;

    #[test]
    fn a_home_is_as_old_as_its_last_change() {
        let at = |seconds| Monotonic::from_start(Duration::from_secs(seconds));
        let assignment = |node: Option<&str>| Assignment {
            version: 1,
            homes: node
                .map(|node| (ShardId(1), Home { node: node.parse().unwrap(), pinned: false }))
                .into_iter()
                .collect(),
        };
        let mut ages = HomeAges::default();
        for (second, node, since) in
            [(1, Some("a"), Some(1)), (2, Some("a"), Some(1)), (3, Some("b"), Some(3)), (4, None, None)]
        {
            ages.observe(&assignment(node), at(second));
            assert_eq!(ages.since(ShardId(1)), since.map(at), "{second}");
        }
    }

    #[test]
    fn a_home_that_changes_twice_in_a_short_time_settles() {
        let at = |millis| Monotonic::from_start(Duration::from_millis(millis));
        let mut ages = HomeAges::default();
        let steps = [
            (0, "a", false),
            (10_000, "b", false),
            (10_100, "a", true),
            (13_099, "a", true),
            (13_100, "a", false),
            (13_200, "b", false),
            (13_300, "a", true),
        ];
        for (millis, node, settles) in steps {
            let home = Home { node: node.parse().unwrap(), pinned: false };
            ages.observe(&Assignment { version: 1, homes: [(ShardId(1), home)].into() }, at(millis));
            assert_eq!(ages.settles(ShardId(1), at(millis)), settles, "{millis}");
        }
    }
}
