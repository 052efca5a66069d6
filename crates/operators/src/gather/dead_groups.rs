//! Groups of dead letters of all nodes.

use std::collections::{BTreeMap, BTreeSet};

use forebay_engine::DeadGroup;
use forebay_peers::looks::Part;
use forebay_proto::{
    time::{earlier, later},
    v1,
};
use forebay_types::Refusal;

use super::Gather;

/// Groups of one answer.
const GROUPS_MAX: usize = 200;

impl Gather {
    /// The dead letters that all nodes have, those groups first that have the most.
    pub async fn dead_groups(
        &self,
        request: &v1::GroupDeadLettersRequest,
    ) -> Result<v1::GroupDeadLettersResponse, Refusal> {
        let (mut sum, shards) = merge(self.look(request).await?);
        sum.incomplete_shards = self.incomplete(&shards);
        Ok(sum)
    }
}

fn merge(parts: Vec<Part<v1::GroupDeadLettersResponse>>) -> (v1::GroupDeadLettersResponse, BTreeSet<u32>) {
    let mut sum = v1::GroupDeadLettersResponse::default();
    let mut groups: BTreeMap<String, v1::DeadLetterGroup> = BTreeMap::new();
    let mut shards = BTreeSet::new();
    for Part { answer, rest } in parts {
        sum.looked_at += answer.looked_at;
        sum.ungrouped += answer.ungrouped;
        sum.total += answer.total;
        sum.topics_cut |= answer.topics_cut;
        shards.extend(rest.shards);
        for group in answer.groups {
            match groups.get_mut(&group.fingerprint) {
                Some(same) => join(same, group),
                None => drop(groups.insert(group.fingerprint.clone(), group)),
            }
        }
    }
    sum.groups = groups.into_values().collect();
    let last = |group: &v1::DeadLetterGroup| group.last_died_at.map(|at| (at.seconds, at.nanos));
    sum.groups.sort_by_key(|group| std::cmp::Reverse((group.count, last(group))));
    sum.ungrouped += sum.groups.iter().skip(GROUPS_MAX).map(|group| group.count).sum::<u64>();
    sum.groups.truncate(GROUPS_MAX);
    (sum, shards)
}

/// Adds a group of another node, of the same reason.
fn join(sum: &mut v1::DeadLetterGroup, part: v1::DeadLetterGroup) {
    sum.count += part.count;
    sum.first_died_at = earlier(sum.first_died_at, part.first_died_at);
    sum.last_died_at = later(sum.last_died_at, part.last_died_at);
    sum.topics.extend(part.topics);
    sum.topics.sort_unstable();
    sum.topics.dedup();
    sum.topics_cut |= part.topics_cut || sum.topics.len() > DeadGroup::TOPICS_MAX;
    sum.topics.truncate(DeadGroup::TOPICS_MAX);
    sum.sample_item_ids.extend(part.sample_item_ids);
    sum.sample_item_ids.truncate(DeadGroup::SAMPLES_MAX);
}

#[cfg(test)]
mod tests {
    use forebay_proto::peer::AskResponse;

    use super::*;

    fn group(reason: &str, count: u64, topic: &str) -> v1::DeadLetterGroup {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        v1::DeadLetterGroup {
            fingerprint: format!("of {reason}"),
            reason: reason.to_owned(),
            count,
            topics: vec![topic.to_owned()],
            first_died_at: at(1),
            last_died_at: at(2),
            ..v1::DeadLetterGroup::default()
        }
    }

    #[test]
    fn groups_of_one_reason_are_one_and_the_largest_is_first() {
        let part = |shard, groups| {
            let answer =
                v1::GroupDeadLettersResponse { groups, looked_at: 5, total: 7, ..Default::default() };
            Part { answer, rest: AskResponse { shards: vec![shard], ..AskResponse::default() } }
        };
        let first = part(1, vec![group("a", 2, "x"), group("b", 3, "x")]);
        let (found, shards) = merge(vec![first, part(2, vec![group("a", 2, "w")])]);
        let groups: Vec<_> = found.groups.iter().map(|it| (&*it.reason, it.count, it.topics.len())).collect();
        assert_eq!(groups, [("a", 4, 2), ("b", 3, 1)]);
        assert_eq!((found.looked_at, found.total, shards.len()), (10, 14, 2));
        assert_eq!(found.groups[0].topics, ["w", "x"]);
    }

    #[test]
    fn what_has_no_place_in_the_answer_is_counted() {
        let groups = (0..GROUPS_MAX as u64 + 2).map(|n| group(&n.to_string(), 1 + n, "x")).collect();
        let answer = v1::GroupDeadLettersResponse { groups, ungrouped: 4, ..Default::default() };
        let (found, _) = merge(vec![Part { answer, rest: AskResponse::default() }]);
        assert_eq!((found.groups.len(), found.ungrouped), (GROUPS_MAX, 4 + 1 + 2));
    }
}
