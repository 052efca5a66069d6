//! ListConsumers: those that the node remembers, put together with the leases in its shards.

use std::collections::BTreeMap;

use forebay_types::{Namespace, Refusal, Seq, Timestamp, Topic};

use crate::{
    api::{ConsumerFigures, ConsumersSeen, LeaseSeen, TopicScope},
    engine::Engine,
    messages::{
        event::Event,
        look::{LeasesSeen, ShardLook, WhichLeases},
    },
};

/// Leases that one event looks at.
const SLICE: usize = 1_000;
/// Leases that are looked at, of all shards.
const LOOKED_AT_MAX: usize = 50_000;
/// Consumers of which leases are added up. Names come from callers.
const FOUND_MAX: usize = 4 * ConsumerFigures::CONSUMERS_MAX;

/// Consumers that are being added up.
#[derive(Default)]
struct Found {
    /// By name.
    by_name: BTreeMap<String, ConsumerFigures>,
    /// There may be more.
    cut: bool,
    /// Leases that were looked at.
    looked_at: usize,
}

impl Found {
    fn add_lease(&mut self, lease: LeaseSeen, topic: &Topic) {
        if !self.by_name.contains_key(&lease.consumer) {
            if self.by_name.len() >= FOUND_MAX {
                self.cut = true;
                return;
            }
            let new = ConsumerFigures { name: lease.consumer.clone(), ..ConsumerFigures::default() };
            self.by_name.insert(lease.consumer.clone(), new);
        }
        if let Some(consumer) = self.by_name.get_mut(&lease.consumer) {
            consumer.add_lease(topic, lease.leased_at);
        }
    }
}

impl Engine {
    /// The consumers of a namespace, as far as this node knows them, and what they have leased in its shards.
    pub async fn consumers(&self, namespace: &Namespace) -> Result<ConsumersSeen, Refusal> {
        let scope = TopicScope { namespace: Some(namespace.clone()), prefix: String::new() };
        let shards = self.look_shards(&scope).await?;
        let known = self.ask(|reply| Event::LookConsumers { namespace: namespace.clone(), reply }).await?;
        let by_name = known.consumers.into_iter().map(|consumer| (consumer.name.clone(), consumer));
        let mut found = Found { by_name: by_name.collect(), cut: known.cut, looked_at: 0 };
        let mut looked_at = Vec::with_capacity(shards.len());
        for shard in &shards {
            if self.add_leases(namespace, shard, &mut found).await? {
                looked_at.push(shard.id);
            }
        }
        let Found { by_name, mut cut, .. } = found;
        cut |= by_name.len() > ConsumerFigures::CONSUMERS_MAX;
        let consumers = by_name.into_values().take(ConsumerFigures::CONSUMERS_MAX).collect();
        Ok(ConsumersSeen { consumers, cut, shards: looked_at })
    }

    /// Adds the leases of a shard. Returns whether the node owned it all the time.
    async fn add_leases(
        &self,
        namespace: &Namespace,
        shard: &ShardLook,
        found: &mut Found,
    ) -> Result<bool, Refusal> {
        let mut after = (Timestamp::MIN, Seq(0));
        loop {
            if found.looked_at >= LOOKED_AT_MAX {
                found.cut = true;
                return Ok(true);
            }
            let which = WhichLeases::OfTenant { after, most: SLICE };
            let seen = self.leases(namespace, shard, which).await?;
            let Some(LeasesSeen { leases, topics, through, looked_at }) = seen else { return Ok(false) };
            found.looked_at += looked_at;
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
