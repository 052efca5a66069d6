//! GetTopic: how a topic is, and its ready items by priority.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Bound,
};

use forebay_types::{Key, Namespace, Refusal, ShardId, State, Timestamp, TopicId, TopicName};

use super::read;
use crate::{
    api::{PriorityCount, TopicDetails, TopicScope, TopicsCall},
    engine::Engine,
    messages::{
        event::Event,
        look::{OutQuestion, PartSnapshot, ShardLook},
    },
};

/// Priorities of a topic that are told.
const PRIORITIES_MAX: usize = 100;
/// Ready items of one shard that are counted.
const COUNTED_MAX: usize = 50_000;
/// Keys of one read.
const READ_KEYS: usize = 5_000;
/// Items that one event is asked about.
const ASKED_AT_ONCE: usize = 1_000;

/// The priorities that were counted.
#[derive(Default)]
struct Counts {
    /// How many items each has, and when the first of them became ready.
    priorities: BTreeMap<i32, (u64, i64)>,
    /// Some items were not counted.
    cut: bool,
}

impl Engine {
    /// Describes a topic, as far as it is in this node's shards.
    pub async fn topic(&self, name: TopicName) -> Result<TopicDetails, Refusal> {
        let scope = TopicScope { namespace: Some(name.namespace.clone()), prefix: name.topic.to_string() };
        let shards = self.look_shards(&scope).await?;
        let call = TopicsCall { scope: scope.clone(), after: None, limit: 1, due: true, forgotten: false };
        let page = self.list_topics(call).await?;
        let topic = page.topics.into_iter().find(|topic| topic.name == name);
        let seen = self.look_topics(&scope, Bound::Included(name.clone()), false, 1).await?;
        let parts = seen.topics.into_iter().filter(|topic| topic.figures.name == name);
        let mut counts = Counts::default();
        let mut missed = seen.doubtful;
        for part in parts.flat_map(|topic| topic.parts).filter(|part| part.ready > 0) {
            let shard = shards.iter().find(|shard| shard.id == part.shard);
            let counted = match shard {
                Some(shard) => self.count(&name.namespace, shard, &part, &mut counts).await?,
                None => None,
            };
            if counted.is_none() {
                missed.push(part.shard);
            }
        }
        let shards: Vec<ShardId> = page.shards.into_iter().filter(|id| !missed.contains(id)).collect();
        let priorities_cut = counts.cut || counts.priorities.len() > PRIORITIES_MAX;
        let told = counts.priorities.into_iter().take(PRIORITIES_MAX);
        let priority = |(priority, (ready, rank))| PriorityCount {
            priority,
            ready,
            oldest_ready_at: Timestamp::from_micros(rank),
        };
        Ok(TopicDetails { topic, priorities: told.map(priority).collect(), priorities_cut, shards })
    }

    /// Counts the ready items of a topic in one shard. `None`: the shard could not be read, or was lost.
    async fn count(
        &self,
        caller: &Namespace,
        shard: &ShardLook,
        part: &PartSnapshot,
        counts: &mut Counts,
    ) -> Result<Option<()>, Refusal> {
        let (mut after, mut looked_at, topic) = (Key::MIN, 0, part.topic);
        loop {
            let keys = read_keys(shard, topic, after).await;
            let Some(keys) = keys else { return Ok(None) };
            looked_at += keys.len();
            for some in keys.chunks(ASKED_AT_ONCE) {
                let Some(ready) = self.not_out(caller, shard, some).await? else { return Ok(None) };
                ready.into_iter().for_each(|key| counts.add(key));
            }
            match keys.last() {
                Some(last) if keys.len() == READ_KEYS => after = *last,
                _ => return Ok(Some(())),
            }
            if looked_at >= COUNTED_MAX {
                counts.cut = true;
                return Ok(Some(()));
            }
        }
    }

    /// The items that are neither leased nor on their way to a lease. `None`: the shard was lost.
    pub(super) async fn not_out(
        &self,
        caller: &Namespace,
        shard: &ShardLook,
        keys: &[Key],
    ) -> Result<Option<Vec<Key>>, Refusal> {
        let question = OutQuestion {
            caller: caller.clone(),
            shard: shard.index,
            term: shard.term,
            seqs: keys.iter().map(|key| key.seq).collect(),
        };
        let out = self.ask(|reply| Event::LookOut { question, reply }).await?;
        let ready = |out: Vec<bool>| keys.iter().zip(out).filter(|(_, out)| !out).map(|(key, _)| *key);
        Ok(out.map(|out| ready(out).collect()))
    }
}

async fn read_keys(shard: &ShardLook, topic: TopicId, after: Key) -> Option<Vec<Key>> {
    read(shard, |reader| async move { reader.keys(topic, State::Ready, after, READ_KEYS).await }).await
}

impl Counts {
    fn add(&mut self, key: Key) {
        match self.priorities.entry(key.priority) {
            Entry::Vacant(entry) => drop(entry.insert((1, key.rank))),
            Entry::Occupied(mut entry) => {
                let (count, rank) = entry.get_mut();
                *count += 1;
                *rank = key.rank.min(*rank);
            }
        }
    }
}
