//! GroupDeadLetters: why dead letters died, as groups of one reason.
//!
//! Each shard looks at its latest dead letters, and adds them to groups as it reads them.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    ops::Bound,
};

use forebay_store::{DeathRow, NameRange};
use forebay_types::{ItemId, Refusal, Seq, ShardId, Timestamp, Topic, TopicId, TopicName};
use futures_util::{StreamExt as _, stream};

use super::read;
use crate::{
    api::{DeadGroup, DeadGroups, DeadGroupsCall, TopicScope, reason},
    engine::Engine,
    messages::look::{ShardLook, TopicSnapshot},
};

/// Topics in memory that one event looks at.
const SLICE: usize = 128;
/// Topics in memory, and dormant ones of each shard, that one call looks at.
const TOPICS_MAX: usize = 50_000;
const DORMANT_MAX: usize = 5_000;
/// Topics of shards that one call reads.
const PARTS_MAX: usize = 2_000;
/// Dead letters of one read.
const READ_ROWS: usize = 1_000;
/// Groups of one node.
const GROUPS_MAX: usize = 1_000;
/// Shards that one call reads at a time.
const SHARDS_AT_ONCE: usize = 16;

/// A topic in one shard, with dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    /// How many it has.
    dead: usize,
    /// The shard.
    shard: ShardId,
    /// Its number there.
    topic: TopicId,
    /// Its name.
    name: Topic,
}

/// Where dead letters are.
#[derive(Default)]
struct Parts {
    /// The topics in shards.
    parts: Vec<Part>,
    /// Shards that could not be looked at.
    missed: HashSet<ShardId>,
    /// There are more topics.
    cut: bool,
}

/// Groups that come into being.
#[derive(Default)]
struct Groups {
    /// By what the reasons have in common.
    by_reason: HashMap<String, DeadGroup>,
    /// How many dead letters are in none.
    ungrouped: u64,
    /// How many were looked at.
    looked_at: u64,
}

impl Engine {
    /// Groups the latest dead letters of this node's shards.
    pub async fn dead_groups(&self, call: DeadGroupsCall) -> Result<DeadGroups, Refusal> {
        let prefix = call.topic.as_deref().unwrap_or_default().to_owned();
        let scope = TopicScope { namespace: Some(call.namespace.clone()), prefix };
        let shards = self.look_shards(&scope).await?;
        let Parts { mut parts, mut missed, cut } = self.parts_with_dead(&call, &scope, &shards).await?;
        let total = parts.iter().map(|part| part.dead as u64).sum();
        parts.sort_unstable_by_key(|part| std::cmp::Reverse(part.dead));
        parts.truncate(PARTS_MAX);
        let mut of_shard: BTreeMap<ShardId, Vec<Part>> = BTreeMap::new();
        parts.into_iter().for_each(|part| of_shard.entry(part.shard).or_default().push(part));
        let mut reads = Vec::new();
        for shard in shards.iter().filter(|shard| !missed.contains(&shard.id)).cloned() {
            let Some(parts) = of_shard.remove(&shard.id) else { continue };
            reads.push(async move { (shard.id, of_one_shard(&shard, parts, call.window).await) });
        }
        let mut reads = stream::iter(reads).buffer_unordered(SHARDS_AT_ONCE);
        let mut sum = Groups::default();
        while let Some((shard, groups)) = reads.next().await {
            match groups {
                Some(groups) => sum.merge(groups),
                None => drop(missed.insert(shard)),
            }
        }
        let looked_at = shards.iter().map(|shard| shard.id).filter(|id| !missed.contains(id));
        Ok(DeadGroups {
            groups: sum.by_reason.into_values().collect(),
            looked_at: sum.looked_at,
            ungrouped: sum.ungrouped,
            total,
            topics_cut: cut,
            shards: looked_at.collect(),
        })
    }

    /// The topics that have dead letters.
    async fn parts_with_dead(
        &self,
        call: &DeadGroupsCall,
        scope: &TopicScope,
        shards: &[ShardLook],
    ) -> Result<Parts, Refusal> {
        let mut found = Parts::default();
        let mut in_memory: HashSet<(ShardId, TopicId)> = HashSet::new();
        let (mut from, mut looked_at) = (scope.begin(None), 0);
        let slice = if call.topic.is_some() { 1 } else { SLICE };
        loop {
            let seen = self.look_topics(scope, from, false, slice).await?;
            found.missed.extend(seen.doubtful);
            looked_at += seen.looked_at;
            for TopicSnapshot { figures, parts } in
                seen.topics.into_iter().filter(|it| call.is_of(&it.figures.name))
            {
                in_memory.extend(parts.iter().map(|part| (part.shard, part.topic)));
                found.parts.extend(parts.into_iter().filter(|part| part.dead > 0).map(|part| Part {
                    dead: usize::try_from(part.dead).unwrap_or(usize::MAX),
                    shard: part.shard,
                    topic: part.topic,
                    name: figures.name.topic.clone(),
                }));
            }
            match seen.through.filter(|_| call.topic.is_none()) {
                Some(last) if looked_at < TOPICS_MAX => from = Bound::Excluded(last),
                last => {
                    found.cut = last.is_some();
                    break;
                }
            }
        }
        found.add_dormant(call, scope, shards, &in_memory).await;
        Ok(found)
    }
}

impl DeadGroupsCall {
    fn is_of(&self, name: &TopicName) -> bool {
        self.topic.as_ref().is_none_or(|topic| *topic == name.topic)
    }
}

impl Parts {
    /// Adds topics that memory has forgotten. One that only looks so is in memory, too.
    async fn add_dormant(
        &mut self,
        call: &DeadGroupsCall,
        scope: &TopicScope,
        shards: &[ShardLook],
        in_memory: &HashSet<(ShardId, TopicId)>,
    ) {
        let through = call.topic.as_ref().map(|topic| TopicName::new(call.namespace.clone(), topic.clone()));
        let range = NameRange { from: scope.begin(None), through: through.or_else(|| scope.end()) };
        let mut reads = Vec::new();
        for shard in shards.iter().filter(|shard| shard.has_dormant).cloned() {
            let range = range.clone();
            reads.push(async move {
                let rows = read(&shard, |it| async move { it.dormant_topics(&range, DORMANT_MAX).await });
                (shard.id, rows.await)
            });
        }
        let answers: Vec<_> = stream::iter(reads).buffer_unordered(SHARDS_AT_ONCE).collect().await;
        for (shard, rows) in answers {
            let Some(rows) = rows else {
                self.missed.insert(shard);
                continue;
            };
            self.cut |= rows.len() >= DORMANT_MAX;
            let rows = rows.into_iter().filter(|row| call.is_of(&row.name));
            self.parts.extend(rows.filter(|row| !in_memory.contains(&(shard, row.id))).map(|row| Part {
                dead: usize::try_from(row.counts.dead).unwrap_or(0),
                shard,
                topic: row.id,
                name: row.name.topic,
            }));
        }
    }
}

/// Groups the latest dead letters of a shard. `None`: it could not be read.
async fn of_one_shard(shard: &ShardLook, parts: Vec<Part>, window: usize) -> Option<Groups> {
    let mut groups = Groups::default();
    for (part, share) in shares(parts, window) {
        let mut before = (Timestamp::MAX, Seq(i64::MAX as u64));
        let mut left = share;
        while left > 0 {
            let (topic, limit) = (part.topic, left.min(READ_ROWS));
            let rows =
                read(shard, |it| async move { it.deaths(topic, before, limit, reason::REASON_BYTES).await });
            let rows = rows.await?;
            let is_end = rows.len() < limit;
            left -= rows.len();
            before = rows.last().map_or(before, |last| (last.died_at, last.seq));
            rows.into_iter().for_each(|row| groups.add(shard.id, &part.name, row));
            if is_end {
                break;
            }
        }
    }
    Some(groups)
}

/// How many of its dead letters each topic may show: an even share, and more where others have less.
fn shares(mut parts: Vec<Part>, window: usize) -> Vec<(Part, usize)> {
    parts.sort_unstable_by_key(|part| part.dead);
    let (mut left, mut waiting) = (window, parts.len());
    let share = |part: Part| {
        let share = part.dead.min(left.div_ceil(waiting.max(1)));
        (left, waiting) = (left - share.min(left), waiting - 1);
        (part, share)
    };
    parts.into_iter().map(share).collect()
}

impl Groups {
    fn add(&mut self, shard: ShardId, topic: &Topic, row: DeathRow) {
        self.looked_at += 1;
        self.join(DeadGroup {
            fingerprint: String::new(),
            reason: reason::of_death(&row.cause, &row.last_error),
            count: 1,
            topics: vec![topic.clone()],
            topics_cut: false,
            first: row.died_at,
            last: row.died_at,
            samples: vec![ItemId { shard, seq: row.seq }],
        });
    }

    fn merge(&mut self, other: Self) {
        self.looked_at += other.looked_at;
        self.ungrouped += other.ungrouped;
        other.by_reason.into_values().for_each(|group| self.join(group));
    }

    /// Adds a group to the one with the same reason, if there is one or there is room for it.
    fn join(&mut self, group: DeadGroup) {
        let room = self.by_reason.len() < GROUPS_MAX;
        match self.by_reason.entry(group.reason.clone()) {
            Entry::Occupied(mut sum) => sum.get_mut().join(group),
            Entry::Vacant(sum) if room => {
                let fingerprint = reason::fingerprint(&group.reason);
                sum.insert(DeadGroup { fingerprint, ..group });
            }
            Entry::Vacant(_) => self.ungrouped += group.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(topic: u32, dead: usize) -> Part {
        Part { dead, shard: ShardId(1), topic: TopicId(topic), name: "t".into() }
    }

    fn row(seq: u64, error: &str) -> DeathRow {
        let died_at = Timestamp::from_micros(seq.cast_signed());
        DeathRow { died_at, seq: Seq(seq), cause: "nacked".to_owned(), last_error: error.to_owned() }
    }

    #[test]
    fn topics_share_the_window_and_leave_what_they_do_not_need() {
        let share = |dead: &[usize], window| {
            let parts = (1..).zip(dead).map(|(topic, dead)| part(topic, *dead)).collect();
            shares(parts, window).into_iter().map(|(_, share)| share).collect::<Vec<_>>()
        };
        assert_eq!(share(&[5_000, 20_000], 10_000), [5_000, 5_000]);
        assert_eq!(share(&[1, 20_000, 9_000], 10_000), [1, 5_000, 4_999]);
        assert_eq!(share(&[7, 8], 10_000), [7, 8]);
        assert_eq!(share(&[3; 4], 2), [1, 1, 0, 0]);
        assert_eq!(share(&[], 2), [0; 0]);
    }

    #[test]
    fn reasons_of_one_kind_are_one_group() {
        let mut groups = Groups::default();
        let topics: Vec<Topic> = (0..20).map(|number| format!("t{number:02}").into()).collect();
        for seq in 1..=20 {
            groups.add(ShardId(1), &topics[seq as usize - 1], row(seq, &format!("timeout after {seq} s")));
        }
        groups.add(ShardId(2), &topics[0], row(21, ""));
        let mut found: Vec<_> = groups.by_reason.into_values().collect();
        found.sort_by_key(|group| group.count);
        let [silent, timeout] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*silent.reason, silent.count), ("nacked", 1));
        assert_eq!((&*timeout.reason, timeout.count), ("timeout after <n> s", 20));
        assert_eq!((timeout.first.as_micros(), timeout.last.as_micros()), (1, 20));
        assert_eq!((&timeout.topics[..], timeout.topics_cut), (&topics[..10], true));
        let samples: Vec<u64> = timeout.samples.iter().map(|id| id.seq.0).collect();
        assert_eq!((samples, groups.looked_at), (vec![1, 2, 3, 4, 5], 21));
    }

    #[test]
    fn what_no_group_has_room_for_is_counted() {
        let mut groups = Groups::default();
        let word = |number: u64| (b'a'..=b'j').nth(number as usize).map(char::from).unwrap_or_default();
        for number in 0..2_000_u64 {
            let text: String = number.to_string().bytes().map(|it| word(u64::from(it - b'0'))).collect();
            groups.add(ShardId(1), &"t".into(), row(number, &text));
        }
        assert_eq!((groups.by_reason.len(), groups.ungrouped, groups.looked_at), (GROUPS_MAX, 1_000, 2_000));
    }
}
