//! ListConsumers: those that the node remembers, put together with the leases in its shards.

use std::collections::BTreeMap;

use forebay_types::{Namespace, Refusal, Seq, Timestamp, TopicName};

use super::caller;
use crate::{
    api::{ConsumerFigures, ConsumerName, ConsumersCall, ConsumersSnapshot, LeaseSnapshot, TopicScope},
    engine::Engine,
    messages::{
        event::Event,
        look::{LeasesSnapshot, ShardLook, WhichLeases},
    },
};

/// Leases that one event looks at.
const SLICE: usize = 1_000;
/// Leases that are looked at, of all shards. Each has an equal part, so that those of one hide none of
/// another.
const LOOKED_AT_MAX: usize = 50_000;

/// Consumers that are being added up.
struct ConsumerSums<'a> {
    /// The call that asks for them.
    call: &'a ConsumersCall,
    /// The first ones, by namespace and name.
    by_name: BTreeMap<ConsumerName, ConsumerFigures>,
    /// There are more behind these.
    more: bool,
    /// Some of them may be missing.
    cut: bool,
    /// Leases that may be looked at in a shard.
    most: usize,
}

impl ConsumerSums<'_> {
    /// Adds a consumer. Names come from callers, so those go at once that are behind the page.
    fn add(&mut self, consumer: ConsumerFigures) {
        self.by_name.insert((consumer.namespace.clone(), consumer.name.clone()), consumer);
        if self.by_name.len() > self.call.limit {
            self.by_name.pop_last();
            self.more = true;
        }
    }

    fn add_lease(&mut self, lease: LeaseSnapshot, topic: &TopicName) {
        if !self.call.has(&topic.namespace, &lease.consumer) {
            return;
        }
        let key = (topic.namespace.clone(), lease.consumer);
        if !self.by_name.contains_key(&key) {
            let (namespace, name) = key.clone();
            self.add(ConsumerFigures { namespace, name, ..ConsumerFigures::default() });
        }
        if let Some(consumer) = self.by_name.get_mut(&key) {
            consumer.add_lease(&topic.topic, lease.leased_at);
        }
    }
}

impl Engine {
    /// Consumers, as far as this node knows them, and what they have leased in its shards.
    pub async fn consumers(&self, call: &ConsumersCall) -> Result<ConsumersSnapshot, Refusal> {
        let scope = TopicScope { namespace: call.namespace.clone(), prefix: String::new() };
        let shards = self.look_shards(&scope).await?;
        let asks = caller(call.namespace.as_ref());
        let known = self
            .ask(|reply| Event::LookConsumers { caller: asks.clone(), call: call.clone(), reply })
            .await?;
        let most = (LOOKED_AT_MAX / shards.len().max(1)).max(SLICE);
        let mut found = ConsumerSums { call, by_name: BTreeMap::new(), more: false, cut: known.cut, most };
        known.consumers.into_iter().for_each(|consumer| found.add(consumer));
        let mut looked_at = Vec::with_capacity(shards.len());
        for shard in &shards {
            if self.add_leases(&asks, shard, &mut found).await? {
                looked_at.push(shard.id);
            }
        }
        let ConsumerSums { by_name, more, cut, .. } = found;
        let through = by_name.keys().next_back().filter(|_| more).cloned();
        Ok(ConsumersSnapshot { consumers: by_name.into_values().collect(), through, cut, shards: looked_at })
    }

    /// Adds the leases of a shard. Returns whether the node owned it all the time.
    async fn add_leases(
        &self,
        caller: &Namespace,
        shard: &ShardLook,
        found: &mut ConsumerSums<'_>,
    ) -> Result<bool, Refusal> {
        let (mut after, mut sum) = ((Timestamp::MIN, Seq(0)), 0);
        loop {
            if sum >= found.most {
                found.cut = true;
                return Ok(true);
            }
            let which = WhichLeases::OfTenant { tenant: found.call.namespace.clone(), after, most: SLICE };
            let seen = self.leases(caller, shard, which).await?;
            let Some(LeasesSnapshot { leases, topics, through, looked_at }) = seen else { return Ok(false) };
            sum += looked_at;
            for ((_, lease), topic) in leases.into_iter().zip(&topics) {
                found.add_lease(lease, topic);
            }
            match through {
                None => return Ok(true),
                Some(last) => after = last,
            }
        }
    }
}
