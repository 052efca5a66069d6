//! FOQS on the database of the run, after Facebook's publication ("FOQS: Scaling a distributed priority
//! queue", 2021).
//!
//! Items are rows. Each shard is one table with three secondary indexes. Enqueues wait in memory for a
//! shard's next insert of many rows. Each shard has an index in memory with the keys of its ready items. Each
//! topic has a prefetcher, which merges the indexes of all shards, reads the rows by key and marks them as
//! delivered, ahead of the demand. An ack deletes the row. All of this runs in the benchmark's process. Parts
//! that no measurement needs (nacks, sweeps for delayed items and expired leases) are left out, which favours
//! FOQS.

mod shard;
mod topic;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use async_trait::async_trait;
use forebay_servers::Process;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use self::{
    shard::{Row, Shard},
    topic::Topic,
};
use super::delays::refuse_delays;
use crate::{
    database::{Database, settings_of},
    system::{
        BenchDelivery, Consumer, Durability, Item, Order, ProcessRole, Producer, System, SystemConfig,
        server::start_server,
    },
};

/// Starts the database server and creates the shards.
pub async fn start(config: &SystemConfig) -> anyhow::Result<Box<dyn System>> {
    let Database::Server { kind, binlog } = config.database else {
        bail!("FOQS runs on a database server; use --database mariadb or mysql");
    };
    let of = config.clone();
    let server = tokio::task::spawn_blocking(move || start_server(kind, binlog, &of)).await??;
    ensure!(config.shards > 0, "FOQS needs at least one shard");
    let mut shards = Vec::new();
    for number in 0..config.shards {
        shards.push(Arc::new(Shard::open(&server.url(), number).await?));
    }
    let topics = (0..config.topics).map(|_| Topic::start(&shards)).collect();
    let queue =
        Arc::new(Queue { shards, topics, next_shard: AtomicUsize::new(0), next_id: AtomicU64::new(1) });
    Ok(Box::new(Foqs { queue, server }))
}

struct Foqs {
    queue: Arc<Queue>,
    server: Process,
}

/// State that producers and consumers share.
struct Queue {
    shards: Vec<Arc<Shard>>,
    topics: Vec<Topic>,
    next_shard: AtomicUsize,
    /// Ids increase over all shards, so that older items come first among equal priorities.
    next_id: AtomicU64,
}

impl Queue {
    fn topic(&self, number: u32) -> anyhow::Result<&Topic> {
        self.topics.get(number as usize).with_context(|| format!("unknown topic {number}"))
    }
}

#[async_trait]
impl System for Foqs {
    fn durability(&self) -> Durability {
        Durability::OnDisk
    }

    fn order(&self) -> Order {
        Order::Priority
    }

    fn batches_are_ordered(&self) -> bool {
        // Prefetched items are delivered before more urgent items that arrived later.
        false
    }

    fn processes(&self) -> Vec<ProcessRole> {
        self.server.pid().map(|pid| ProcessRole { role: "database", pid }).into_iter().collect()
    }

    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut settings = settings_of(Some(&self.server)).await?;
        let ours = [
            ("shards", self.queue.shards.len().to_string()),
            ("rows in one statement", format!("at most {}", shard::ROWS_MAX)),
            ("prefetch", format!("twice the demand, at most {} per topic", topic::PREFETCH_MAX)),
        ];
        settings.extend(ours.map(|(name, value)| (name.to_owned(), value)));
        Ok(settings)
    }

    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>> {
        Ok(Box::new(FoqsProducer { queue: self.queue.clone() }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        let came = Arc::new(Notify::new());
        for &topic in &topics {
            self.queue.topic(topic)?.subscribe(&came);
        }
        Ok(Box::new(FoqsConsumer { queue: self.queue.clone(), topics, came, leased: HashMap::new() }))
    }
}

struct FoqsProducer {
    queue: Arc<Queue>,
}

#[async_trait]
impl Producer for FoqsProducer {
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()> {
        refuse_delays(&items)?;
        let queue = &self.queue;
        let to = queue.topic(topic)?;
        let shard = queue.next_shard.fetch_add(1, Ordering::Relaxed) % queue.shards.len();
        let first = queue.next_id.fetch_add(items.len() as u64, Ordering::Relaxed);
        let keys: Vec<(u8, u64)> = items.iter().zip(first..).map(|(item, id)| (item.priority, id)).collect();
        let rows = items.into_iter().zip(&keys);
        let rows = rows.map(|(item, &(priority, id))| Row { id, topic, priority, payload: item.payload });
        queue.shards[shard].enqueue(rows.collect()).await?;
        to.ready(shard, keys);
        Ok(())
    }
}

struct FoqsConsumer {
    queue: Arc<Queue>,
    topics: Vec<u32>,
    came: Arc<Notify>,
    /// Ids that the last `take` returned, by shard.
    leased: HashMap<usize, Vec<u64>>,
}

impl FoqsConsumer {
    fn take_prefetched(&mut self, max: usize) -> anyhow::Result<Vec<BenchDelivery>> {
        // Another topic is first next time.
        if self.topics.len() > 1 {
            self.topics.rotate_left(1);
        }
        let mut items = Vec::new();
        for &number in &self.topics {
            for item in self.queue.topic(number)?.take(max - items.len(), max)? {
                self.leased.entry(item.shard).or_default().push(item.id);
                items.push(BenchDelivery { topic: number, payload: item.payload });
            }
            if items.len() == max {
                break;
            }
        }
        Ok(items)
    }
}

#[async_trait]
impl Consumer for FoqsConsumer {
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<BenchDelivery>> {
        self.leased.clear();
        let deadline = Instant::now() + wait;
        loop {
            let items = self.take_prefetched(max)?;
            if !items.is_empty() || timeout_at(deadline, self.came.notified()).await.is_err() {
                return Ok(items);
            }
        }
    }

    async fn ack(&mut self) -> anyhow::Result<()> {
        let leased = std::mem::take(&mut self.leased);
        let deletes = leased.into_iter().map(|(shard, ids)| self.queue.shards[shard].delete(ids));
        futures_util::future::try_join_all(deletes).await?;
        Ok(())
    }
}
