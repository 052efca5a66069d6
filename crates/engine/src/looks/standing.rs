//! ExplainTopic and ExplainItem, as far as this node knows: how a topic stands in its shards, and how many
//! items are delivered before one.

use std::ops::Bound;

use forebay_types::{Key, Refusal, State, TopicId, TopicName};

use super::read;
use crate::{
    api::{BehindCall, TopicScope, TopicStanding},
    engine::Engine,
    messages::{
        event::Event,
        look::{ShardLook, StandingSnapshot},
    },
};

/// The most items that are counted before one.
const BEHIND_MAX: u64 = 10_000;
/// Items of one read.
const SLICE: usize = 1_000;
/// Scheduled items of a topic and shard that are looked at, to learn when the next one is due.
const DUE_LOOKED_AT_MAX: u64 = 50_000;

impl Engine {
    /// How a topic stands at this node.
    pub async fn standing(&self, name: TopicName) -> Result<TopicStanding, Refusal> {
        let scope = scope(&name);
        let seen = self.ask(|reply| Event::LookStanding { name: name.clone(), reply }).await?;
        let StandingSnapshot { mut standing, topics } = seen;
        let nothing_ready = standing.shards.iter().all(|standing| standing.ready == 0);
        let shards = if nothing_ready { self.look_shards(&scope).await? } else { Vec::new() };
        for (standing, topic) in standing.shards.iter_mut().zip(topics) {
            let is_few = (1..=DUE_LOOKED_AT_MAX).contains(&standing.scheduled);
            let shard = shards.iter().find(|shard| shard.id == standing.shard);
            if let (true, Some(shard), Some(topic)) = (is_few && standing.breaker.is_none(), shard, topic) {
                let due = read(shard, |reader| async move { reader.first_due(&[topic]).await }).await;
                standing.next_due_at = due.and_then(|due| due.first().map(|(_, at)| *at));
            }
        }
        Ok(standing)
    }

    /// How many ready items of its topic this node delivers before an item: 10,000 are counted at most.
    /// `None`: a shard could not be read.
    pub async fn count_before(&self, call: &BehindCall) -> Result<Option<u64>, Refusal> {
        let BehindCall { name, id, key } = call;
        let scope = scope(name);
        let shards = self.look_shards(&scope).await?;
        let seen = self.look_topics(&scope, Bound::Included(name.clone()), false, 1).await?;
        let parts = seen.topics.into_iter().filter(|topic| topic.figures.name == *name);
        let mut count = 0;
        for part in parts.flat_map(|topic| topic.parts).filter(|part| part.ready > 0) {
            let Some(shard) = shards.iter().find(|shard| shard.id == part.shard) else { return Ok(None) };
            // Of items with one priority and rank those of the smaller shard come first.
            let is_before = |other: &Key| {
                let place = |key: &Key, shard| (key.priority, key.rank, shard, key.seq);
                place(other, shard.id) < place(key, id.shard)
            };
            let left = BEHIND_MAX - count;
            let Some(more) = self.count_in(name, shard, part.topic, left, is_before).await? else {
                return Ok(None);
            };
            count += more;
            if count >= BEHIND_MAX {
                break;
            }
        }
        Ok(Some(count))
    }

    /// Counts the first ready items of a topic in one shard, as long as they are before another one.
    async fn count_in(
        &self,
        name: &TopicName,
        shard: &ShardLook,
        topic: TopicId,
        most: u64,
        is_before: impl Fn(&Key) -> bool,
    ) -> Result<Option<u64>, Refusal> {
        let (mut after, mut count, mut looked_at) = (Key::MIN, 0, 0);
        loop {
            let keys =
                read(shard, |it| async move { it.keys(topic, State::Ready, after, SLICE).await }).await;
            let Some(keys) = keys else { return Ok(None) };
            looked_at += keys.len() as u64;
            let before: Vec<Key> = keys.iter().copied().take_while(&is_before).collect();
            let Some(ready) = self.not_out(&name.namespace, shard, &before).await? else { return Ok(None) };
            count = (count + ready.len() as u64).min(most);
            match keys.last() {
                // A leased item stands in the index too, and is looked at without being counted.
                Some(last) if keys.len() == SLICE && before.len() == SLICE && count < most => {
                    if looked_at >= 2 * BEHIND_MAX {
                        return Ok(Some(count));
                    }
                    after = *last;
                }
                _ => return Ok(Some(count)),
            }
        }
    }
}

fn scope(name: &TopicName) -> TopicScope {
    TopicScope { namespace: Some(name.namespace.clone()), prefix: name.topic.to_string() }
}
