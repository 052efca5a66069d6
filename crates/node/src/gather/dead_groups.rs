//! Groups of dead letters of all nodes.

use std::collections::{BTreeMap, BTreeSet};

use forebay_engine::{DeadGroup, DeadGroups, DeadGroupsCall};
use forebay_types::Refusal;

use super::Gather;

impl Gather {
    /// The dead letters that all nodes have, those groups first that have the most.
    pub async fn dead_groups(&self, call: &DeadGroupsCall) -> Result<DeadGroups, Refusal> {
        let asked =
            self.ask_others(|links, address| async move { links.group_dead_letters(&address, call).await });
        let (own, others) = tokio::join!(self.engine.dead_groups(call.clone()), asked);
        Ok(merge(std::iter::once(own?).chain(others)))
    }
}

fn merge(answers: impl Iterator<Item = DeadGroups>) -> DeadGroups {
    let mut sum = DeadGroups::default();
    let mut groups: BTreeMap<String, DeadGroup> = BTreeMap::new();
    let mut shards = BTreeSet::new();
    for answer in answers {
        sum.looked_at += answer.looked_at;
        sum.ungrouped += answer.ungrouped;
        sum.total += answer.total;
        sum.topics_cut |= answer.topics_cut;
        shards.extend(answer.shards);
        for group in answer.groups {
            match groups.get_mut(&group.fingerprint) {
                Some(same) => same.join(group),
                None => drop(groups.insert(group.fingerprint.clone(), group)),
            }
        }
    }
    sum.groups = groups.into_values().collect();
    sum.groups.sort_by_key(|group| std::cmp::Reverse((group.count, group.last)));
    sum.shards = shards.into_iter().collect();
    sum
}

#[cfg(test)]
mod tests {
    use forebay_types::{ShardId, Timestamp};

    use super::*;

    fn group(reason: &str, count: u64, topic: &str) -> DeadGroup {
        let at = Timestamp::from_micros;
        DeadGroup {
            fingerprint: format!("of {reason}"),
            reason: reason.to_owned(),
            count,
            topics: vec![topic.into()],
            topics_cut: false,
            first: at(1),
            last: at(2),
            samples: Vec::new(),
        }
    }

    #[test]
    fn groups_of_one_reason_are_one_and_the_largest_is_first() {
        let answer = |shard, groups| DeadGroups {
            groups,
            looked_at: 5,
            total: 7,
            shards: vec![ShardId(shard)],
            ..DeadGroups::default()
        };
        let first = answer(1, vec![group("a", 2, "x"), group("b", 3, "x")]);
        let found = merge([first, answer(2, vec![group("a", 2, "w")])].into_iter());
        let groups: Vec<_> = found.groups.iter().map(|it| (&*it.reason, it.count, it.topics.len())).collect();
        assert_eq!(groups, [("a", 4, 2), ("b", 3, 1)]);
        assert_eq!((found.looked_at, found.total, found.shards.len()), (10, 14, 2));
    }
}
