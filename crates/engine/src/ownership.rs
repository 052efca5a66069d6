//! What a take-over, and the loss of a shard, mean for the node.

use std::time::Duration;

use forebay_types::{TopicId, TopicName};

use crate::{
    breaker::Breaker,
    core::{Core, trusted_until},
    event::Taken,
    io::Task,
    shard::Owned,
};

impl Core {
    /// A shard was taken over: it is served from now on.
    pub fn taken(&mut self, place: usize, life: u64, taken: Taken) {
        if self.shards[place].owned.is_some() {
            self.lose(place, true);
        }
        let (now, at) = (self.time.now(), self.time.monotonic());
        let trusted = trusted_until(&self.settings, taken.began);
        let fence = taken.fence;
        let mut owned = Owned::new(
            fence,
            taken.image,
            taken.reader,
            at,
            trusted,
            taken.batch_bytes,
            taken.outage.min(Duration::from_secs(5)),
        );
        // A fence far ahead of node time raises this shard's ranks alone.
        if fence.marks.rank > now.plus(Duration::from_secs(1)).as_micros() {
            owned.rank_floor = fence.marks.rank;
        } else {
            self.rank = self.rank.max(fence.marks.rank);
        }
        owned.shard_lists = self.homes.record(&taken.lists, fence.batch + 1, now);
        let shard = &mut self.shards[place];
        shard.life = life;
        shard.state = "owned";
        shard.last_error.clear();
        shard.breaker = Breaker::new(at);
        for (id, topic) in &owned.topics {
            let entry = self.topics.entry(topic.name.clone()).or_default();
            if entry.parts.is_empty() {
                *self.topics_of.entry(topic.name.namespace.clone()).or_default() += 1;
            }
            entry.parts.push((place, *id));
            self.woken.insert(topic.name.clone());
        }
        shard.owned = Some(Box::new(owned));
        self.tell_ready();
        if self.stopping.is_some() {
            self.shards[place].tasks.send(Task::Release).ok();
        }
    }

    /// A shard is no longer ours. `sent`: nobody knows what became of the batch under way.
    pub fn lose(&mut self, place: usize, sent: bool) {
        let at = self.time.monotonic();
        let id = self.shards[place].id;
        let Some(mut owned) = self.shards[place].owned.take() else { return };
        if self.shards[place].state == "stopped" {
            tracing::info!(shard.id = id.0, epoch = owned.epoch, "shard given up");
        } else {
            tracing::warn!(shard.id = id.0, epoch = owned.epoch, "shard lost");
        }
        if self.shards[place].state == "owned" {
            self.shards[place].state = "waiting";
        }
        self.shards[place].breaker.open(at);
        let server = self.shards[place].server;
        if !self.shards.iter().any(|shard| shard.server == server && shard.owned.is_some()) {
            self.time.forget(server);
        }
        for (topic, state) in &owned.topics {
            self.forget_topic(place, *topic, &state.name);
        }
        self.fail_everything(place, &mut owned, sent);
        // Whoever waited for this shard to record its list is told that it is out of reach.
        (0..self.shards.len()).for_each(|place| self.unblock(place));
    }

    pub fn forget_topic(&mut self, place: usize, id: TopicId, name: &TopicName) {
        let Some(topic) = self.topics.get_mut(name) else { return };
        let before = topic.parts.len();
        topic.parts.retain(|part| *part != (place, id));
        if before > 0
            && topic.parts.is_empty()
            && let Some(count) = self.topics_of.get_mut(&name.namespace)
        {
            *count -= 1;
            if *count == 0 {
                self.topics_of.remove(&name.namespace);
            }
        }
        if topic.parts.is_empty() && topic.waiters.is_empty() {
            self.topics.remove(name);
        } else {
            self.woken.insert(name.clone());
        }
        if let Some(active) = self.active.get_mut(&name.namespace) {
            active.note(&name.topic);
        }
    }

    pub fn tell_ready(&self) {
        let ready = self.shards.iter().all(|shard| shard.owned.is_some() || shard.state == "unreachable");
        let some = self.shards.iter().any(|shard| shard.owned.is_some());
        self.ready.send_if_modified(|told| {
            let changed = *told != (ready && some);
            *told = ready && some;
            changed
        });
    }
}
