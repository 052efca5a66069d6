//! One topic: the index in memory of its ready items in every shard, and what was prefetched of them.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use anyhow::bail;
use bytes::Bytes;
use tokio::{sync::Notify, task::AbortHandle};

use super::shard::Shard;

/// Items of a topic that are prefetched at most.
pub const MAX_PREFETCH: usize = 1_000;

/// Priority and id; the smallest goes first.
type Key = (u8, u64);

/// A prefetched item.
#[derive(Debug)]
pub struct Ready {
    /// Its key.
    pub id: u64,
    /// The number of its shard.
    pub shard: usize,
    /// What it carries.
    pub payload: Bytes,
}

/// A topic and its prefetcher, which ends when this is dropped.
pub struct Topic {
    inner: Arc<Inner>,
    prefetcher: AbortHandle,
}

struct Inner {
    state: Mutex<State>,
    /// There are new keys, or there is new demand.
    work: Notify,
}

struct State {
    /// The keys of ready items, a set a shard.
    index: Vec<BTreeSet<Key>>,
    prefetched: VecDeque<Ready>,
    /// How much is to be prefetched; nothing until somebody dequeues.
    demand: usize,
    consumers: Vec<Weak<Notify>>,
    failure: Option<String>,
}

impl Drop for Topic {
    fn drop(&mut self) {
        self.prefetcher.abort();
    }
}

impl Topic {
    /// An empty topic over these shards.
    pub fn start(shards: &[Arc<Shard>]) -> Self {
        let state = State {
            index: vec![BTreeSet::new(); shards.len()],
            prefetched: VecDeque::new(),
            demand: 0,
            consumers: Vec::new(),
            failure: None,
        };
        let inner = Arc::new(Inner { state: Mutex::new(state), work: Notify::new() });
        let prefetcher = tokio::spawn(prefetch(inner.clone(), shards.to_vec())).abort_handle();
        Self { inner, prefetcher }
    }

    /// Tells this consumer when something was prefetched, as long as it lives.
    pub fn tell(&self, consumer: &Arc<Notify>) {
        let mut state = self.inner.state();
        state.consumers.retain(|consumer| consumer.strong_count() > 0);
        state.consumers.push(Arc::downgrade(consumer));
    }

    /// Items with these keys were committed in that shard.
    pub fn ready(&self, shard: usize, keys: Vec<Key>) {
        self.inner.state().index[shard].extend(keys);
        self.inner.work.notify_one();
    }

    /// Up to `max` prefetched items. The prefetcher then aims at twice the demand.
    pub fn take(&self, max: usize, demand: usize) -> anyhow::Result<Vec<Ready>> {
        let mut state = self.inner.state();
        if let Some(failure) = &state.failure {
            bail!(failure.clone());
        }
        state.demand = state.demand.max(demand * 2).min(MAX_PREFETCH);
        let count = max.min(state.prefetched.len());
        let items = state.prefetched.drain(..count).collect();
        self.inner.work.notify_one();
        Ok(items)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the first keys of all shards off the index, as far as there is demand.
    fn merge(&mut self) -> Vec<(Key, usize)> {
        let heads = self.index.iter().enumerate();
        let mut heads: BinaryHeap<_> =
            heads.filter_map(|(shard, keys)| Some(Reverse((*keys.first()?, shard)))).collect();
        let mut merged = Vec::new();
        // A statement for few items costs as much as one for many, so what is left may shrink to the half.
        let room = self.demand.saturating_sub(self.prefetched.len());
        if room * 2 < self.demand {
            return merged;
        }
        while merged.len() < room
            && let Some(Reverse((key, shard))) = heads.pop()
        {
            self.index[shard].pop_first();
            merged.push((key, shard));
            heads.extend(self.index[shard].first().map(|next| Reverse((*next, shard))));
        }
        merged
    }
}

async fn prefetch(inner: Arc<Inner>, shards: Vec<Arc<Shard>>) {
    loop {
        inner.work.notified().await;
        loop {
            let merged = inner.state().merge();
            if merged.is_empty() {
                break;
            }
            let leased = lease(&shards, &merged).await;
            let mut state = inner.state();
            match leased {
                Ok(items) => state.prefetched.extend(items),
                Err(error) => state.failure = Some(format!("{error:#}")),
            }
            for consumer in state.consumers.iter().filter_map(Weak::upgrade) {
                consumer.notify_one();
            }
        }
    }
}

/// Marks the items as delivered in all their shards at once; returns them in the order of the keys.
async fn lease(shards: &[Arc<Shard>], keys: &[(Key, usize)]) -> anyhow::Result<Vec<Ready>> {
    let mut by_shard: HashMap<usize, Vec<u64>> = HashMap::new();
    for &((_, id), shard) in keys {
        by_shard.entry(shard).or_default().push(id);
    }
    let leases = by_shard.into_iter().map(|(shard, ids)| shards[shard].lease(ids));
    let payloads = futures_util::future::try_join_all(leases).await?;
    let mut payloads: HashMap<u64, Bytes> = payloads.into_iter().flatten().collect();
    let items = keys.iter().map(|&((_, id), shard)| match payloads.remove(&id) {
        Some(payload) => Ok(Ready { id, shard, payload }),
        None => bail!("item {id} is not in shard {shard}"),
    });
    items.collect()
}
