//! FOQS on the database of the run, as Facebook has published it ("FOQS: Scaling a distributed priority
//! queue", 2021).
//!
//! Items are rows, a table a shard with three secondary indexes. Enqueues wait in memory for a shard's next
//! insert of many rows. Each shard has an index in memory of the keys of its ready items. A prefetcher a
//! topic merges those of all shards, reads the rows by key and marks each as delivered, ahead of the demand.
//! An ack deletes the row. All that is in this process; the published parts that no measurement needs (nacks,
//! sweeps for delayed items and for lost leases) are left out, which is in this peer's favour.

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
use super::no_delays;
use crate::{
    database::{Database, settings_of, start_server},
    system::{Consumer, Delivered, Item, Order, Part, Producer, Promise, Setup, System},
};

/// Starts the server and makes the shards.
pub async fn start(setup: &Setup) -> anyhow::Result<Box<dyn System>> {
    let Database::Server { kind, binlog } = setup.database else {
        bail!("FOQS runs on a database server");
    };
    let of = setup.clone();
    let server = tokio::task::spawn_blocking(move || start_server(kind, binlog, &of)).await??;
    ensure!(setup.shards > 0, "FOQS needs a shard");
    let mut shards = Vec::new();
    for number in 0..setup.shards {
        shards.push(Arc::new(Shard::open(&server.url(), number).await?));
    }
    let topics = (0..setup.topics).map(|_| Topic::start(&shards)).collect();
    let queue =
        Arc::new(Queue { shards, topics, next_shard: AtomicUsize::new(0), next_id: AtomicU64::new(1) });
    Ok(Box::new(Foqs { queue, server }))
}

struct Foqs {
    queue: Arc<Queue>,
    server: Process,
}

/// What producers and consumers share.
struct Queue {
    shards: Vec<Arc<Shard>>,
    topics: Vec<Topic>,
    next_shard: AtomicUsize,
    /// Ids grow over all shards, so that among equal priorities the older item goes first.
    next_id: AtomicU64,
}

impl Queue {
    fn topic(&self, number: u32) -> anyhow::Result<&Topic> {
        self.topics.get(number as usize).with_context(|| format!("no topic {number}"))
    }
}

#[async_trait]
impl System for Foqs {
    fn promise(&self) -> Promise {
        Promise::Disk
    }

    fn order(&self) -> Order {
        Order::Priority
    }

    fn answers(&self) -> bool {
        // What was prefetched is handed out before better items that came since.
        false
    }

    fn parts(&self) -> Vec<Part> {
        self.server.pid().map(|pid| Part { role: "database", pid }).into_iter().collect()
    }

    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut settings = settings_of(Some(&self.server)).await?;
        let ours = [
            ("shards", self.queue.shards.len().to_string()),
            ("rows in one statement", format!("at most {}", shard::MAX_ROWS)),
            ("prefetch", format!("twice the demand, at most {} a topic", topic::MAX_PREFETCH)),
        ];
        settings.extend(ours.map(|(name, value)| (name.to_owned(), value)));
        Ok(settings)
    }

    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>> {
        Ok(Box::new(Enqueues { queue: self.queue.clone() }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        let came = Arc::new(Notify::new());
        for &topic in &topics {
            self.queue.topic(topic)?.tell(&came);
        }
        Ok(Box::new(Dequeues { queue: self.queue.clone(), topics, came, leased: HashMap::new() }))
    }
}

struct Enqueues {
    queue: Arc<Queue>,
}

#[async_trait]
impl Producer for Enqueues {
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()> {
        no_delays(&items)?;
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

struct Dequeues {
    queue: Arc<Queue>,
    topics: Vec<u32>,
    came: Arc<Notify>,
    /// What the last `take` returned: ids by shard.
    leased: HashMap<usize, Vec<u64>>,
}

impl Dequeues {
    fn at_hand(&mut self, max: usize) -> anyhow::Result<Vec<Delivered>> {
        // Another topic goes first the next time.
        if self.topics.len() > 1 {
            self.topics.rotate_left(1);
        }
        let mut items = Vec::new();
        for &number in &self.topics {
            for item in self.queue.topic(number)?.take(max - items.len(), max)? {
                self.leased.entry(item.shard).or_default().push(item.id);
                items.push(Delivered { topic: number, payload: item.payload });
            }
            if items.len() == max {
                break;
            }
        }
        Ok(items)
    }
}

#[async_trait]
impl Consumer for Dequeues {
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<Delivered>> {
        self.leased.clear();
        let deadline = Instant::now() + wait;
        loop {
            let items = self.at_hand(max)?;
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
