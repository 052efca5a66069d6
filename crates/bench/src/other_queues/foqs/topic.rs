//! A topic: an index in memory of its ready items in every shard, and its prefetched items.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use anyhow::bail;
use bytes::Bytes;
use tokio::{sync::Notify, task::AbortHandle};

use super::shard::Shard;

/// Maximum number of prefetched items per topic.
pub const PREFETCH_MAX: usize = 1_000;

/// Priority and id; the smallest key is the most urgent.
type Key = (u8, u64);

/// A prefetched item.
#[derive(Debug)]
pub struct Ready {
    /// Key of the item.
    pub id: u64,
    /// Number of its shard.
    pub shard: usize,
    /// The payload.
    pub payload: Bytes,
}

/// A topic and its prefetcher. Dropping it ends the prefetcher.
pub struct Topic {
    /// State that topic and prefetcher share.
    inner: Arc<Inner>,
    /// Handle of the prefetcher.
    prefetcher: AbortHandle,
}

struct Inner {
    state: Mutex<State>,
    /// Notified of new keys and of new demand.
    work: Notify,
}

struct State {
    /// Keys of ready items, one set per shard.
    index: Vec<BTreeSet<Key>>,
    prefetched: VecDeque<Ready>,
    /// Number of items to prefetch; 0 until the first dequeue.
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

    /// Notifies this consumer of prefetched items until it is dropped.
    pub fn subscribe(&self, consumer: &Arc<Notify>) {
        let mut state = self.inner.state();
        state.consumers.retain(|consumer| consumer.strong_count() > 0);
        state.consumers.push(Arc::downgrade(consumer));
    }

    /// Adds the keys of items that were committed in this shard.
    pub fn ready(&self, shard: usize, keys: Vec<Key>) {
        self.inner.state().index[shard].extend(keys);
        self.inner.work.notify_one();
    }

    /// Takes up to `max` prefetched items. The prefetcher then aims at twice the demand.
    pub fn take(&self, max: usize, demand: usize) -> anyhow::Result<Vec<Ready>> {
        let mut state = self.inner.state();
        if let Some(failure) = &state.failure {
            bail!(failure.clone());
        }
        state.demand = state.demand.max(demand * 2).min(PREFETCH_MAX);
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
    /// Removes the most urgent keys of all shards from the index, as many as the demand needs.
    fn merge(&mut self) -> Vec<(Key, usize)> {
        let heads = self.index.iter().enumerate();
        let mut heads: BinaryHeap<_> =
            heads.filter_map(|(shard, keys)| Some(Reverse((*keys.first()?, shard)))).collect();
        let mut merged = Vec::new();
        // A statement for few items costs as much as one for many, so the prefetched items may shrink by half
        // first.
        let missing = self.demand.saturating_sub(self.prefetched.len());
        if missing * 2 < self.demand {
            return merged;
        }
        while merged.len() < missing
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

/// Marks the items as delivered in all their shards at the same time. Returns them in the order of the keys.
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
