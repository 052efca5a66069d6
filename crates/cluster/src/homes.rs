//! How long each shard has had its home, as one observer saw it on its own clock.

use std::collections::BTreeMap;

use forebay_store::Assignment;
use forebay_types::{Monotonic, NodeName, ShardId};

/// Since when each shard has had its home. What an observer sees first may have changed just before, so it
/// counts as changed at that moment.
#[derive(Debug, Clone, Default)]
pub struct HomeAges(BTreeMap<ShardId, Age>);

#[derive(Debug, Clone)]
struct Age {
    home: NodeName,
    since: Monotonic,
}

impl HomeAges {
    /// Takes in what was read from the catalog just now.
    pub fn observe(&mut self, assignment: &Assignment, now: Monotonic) {
        self.0.retain(|id, _| assignment.homes.contains_key(id));
        for (id, home) in &assignment.homes {
            let new = || Age { home: home.node.clone(), since: now };
            let age = self.0.entry(*id).or_insert_with(new);
            if age.home != home.node {
                *age = new();
            }
        }
    }

    /// Since when a shard has had its home.
    pub fn since(&self, id: ShardId) -> Option<Monotonic> {
        self.0.get(&id).map(|age| age.since)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
}
