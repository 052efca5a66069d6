//! What operators see of the engine.

use std::collections::BTreeMap;

use std::sync::atomic::Ordering;

use crate::{ShardStatus, Status, SweepStatus, TopicStatus, core::Core};

/// Topics that one status lists.
const TOPICS: usize = 1_000;

impl Core {
    pub fn status(&mut self) -> Status {
        let mut topics: BTreeMap<(&str, &str), TopicStatus> = BTreeMap::new();
        let mut shards = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let offset = self.time.offset(shard.server).unwrap_or(0);
            let mut status = ShardStatus {
                id: shard.id.0,
                state: shard.state.to_owned(),
                breaker: shard.breaker.phase().name().to_owned(),
                clock_offset_micros: offset,
                last_error: shard.last_error.clone(),
                ..ShardStatus::default()
            };
            if let Some(owned) = &shard.owned {
                status.epoch = owned.epoch;
                status.batch = owned.batch;
                status.topics = owned.topics.len();
                status.index_bytes = owned.index_bytes;
                status.commit_micros = u64::try_from(owned.commit_took.as_micros()).unwrap_or(u64::MAX);
                status.sweeps = [&owned.due, &owned.expiry]
                    .map(|sweeper| SweepStatus {
                        name: sweeper.sweep.name().to_owned(),
                        moved: sweeper.moved,
                        checkpoint_micros: sweeper.checkpoint.as_micros(),
                    })
                    .into();
                for (id, state) in &owned.topics {
                    let leased = owned.leases.of_topic(*id) as u64;
                    let count = |count: i64| u64::try_from(count).unwrap_or(0);
                    let ready = count(state.counts.ready).saturating_sub(leased);
                    let key = (&*state.name.namespace, &*state.name.topic);
                    let topic = topics.entry(key).or_insert_with(|| TopicStatus {
                        namespace: state.name.namespace.to_string(),
                        topic: state.name.topic.to_string(),
                        waiting: self.topics.get(&state.name).map_or(0, |topic| topic.waiters.len()),
                        ..TopicStatus::default()
                    });
                    topic.ready += ready;
                    topic.leased += leased;
                    topic.scheduled += count(state.counts.scheduled);
                    topic.dead += count(state.counts.dead);
                    status.ready += ready;
                    status.leased += leased;
                    status.scheduled += count(state.counts.scheduled);
                    status.dead += count(state.counts.dead);
                }
            }
            shards.push(status);
        }
        Status {
            shards,
            polls: self.polls.len(),
            admitted_bytes: self.admitted.load(Ordering::Relaxed),
            topic_count: topics.len(),
            topics: topics.into_values().take(TOPICS).collect(),
        }
    }
}
