//! A cluster under load whose ways to its shards lead through proxies.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::EnqueueItem;
use forebay_testkit::{
    proxy::Proxy,
    servers::{self, Foreign, Kind, Place},
};
use tokio::time::{Instant, sleep};

use super::nodes::{Nodes, channels, metric_of_all, owned_by};
use crate::{
    history::{Counts, History},
    load::{Load, topics},
    node::Node,
    rpc::{Rpc, WorstOutcome, payload},
    scenario::progress,
};

/// Numbers of items that a test sends itself begin here.
const OWN_ITEMS: u64 = 1_000_000;
/// A shard that has been healed stores an item within this time.
const STORED_WITHIN: Duration = Duration::from_secs(30);
/// The pause after a call that was refused.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// Nodes under load, and the ways to their shards.
pub struct Ways {
    /// The nodes, all of them running. They end before the folder with their logs, which is in `cluster`.
    pub nodes: Vec<Node>,
    /// The catalog and the shards.
    pub cluster: Nodes,
    /// The way to each shard, in their order. The catalog is reached without one.
    pub proxies: Vec<Proxy>,
    /// The server with the shards and the catalog, without a database.
    pub server: String,
    /// The names of the shards' databases, in their order.
    pub databases: Vec<String>,
    /// Events that clients saw.
    pub history: Arc<History>,
    /// Load by clients, until it is stopped.
    load: Option<Load>,
    /// The number of the next item that the test sends itself.
    items: AtomicU64,
}

impl Ways {
    /// Starts nodes and shards, on a server that many tests share. `seed` is that of the load.
    pub async fn new(kind: Kind, nodes: usize, shards: usize, seed: u64) -> Self {
        let server = servers::shared(kind).await;
        let mut urls = Vec::new();
        for _ in 0..shards {
            urls.push(server.fresh_url().await);
        }
        let (places, catalog) = (vec![Place::default(); nodes], server.fresh_url().await);
        Self::at(places, server.url(), &catalog, &urls, seed).await
    }

    /// A node in each of these places. The catalog and the shards are in these databases of a server.
    pub async fn at(places: Vec<Place>, server: &str, catalog: &str, shards: &[String], seed: u64) -> Self {
        let (mut proxies, mut urls, mut databases) = (Vec::new(), Vec::new(), Vec::new());
        for url in shards {
            let proxy = Proxy::of_url(url).await;
            // A proxy does not see COMMIT in what is encrypted.
            urls.push(format!("{}?ssl-mode=DISABLED", proxy.through(url)));
            databases.push(url.rsplit('/').next().expect("a database").to_owned());
            proxies.push(proxy);
        }
        let cluster = Nodes::at(places, catalog, &urls).await;
        let nodes = cluster.start_all().await;
        let history = Arc::new(History::new());
        let load = Some(Load::start(&history, channels(&nodes), seed));
        let (server, items) = (server.to_owned(), AtomicU64::new(OWN_ITEMS));
        progress(&history, "load before the fault", 300).await;
        Self { nodes, cluster, proxies, server, databases, history, load, items }
    }

    /// The node that owns this shard, and no other one says that it does.
    pub async fn owner(&self, shard: u32) -> usize {
        let mut owners = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            if owned_by(node).await.contains(&u64::from(shard)) {
                owners.push(number);
            }
        }
        assert_eq!(owners.len(), 1, "the owners of shard {shard} are {owners:?}");
        owners[0]
    }

    /// Another program's connection to the database of this shard.
    pub async fn foreign(&self, shard: u32) -> Foreign {
        Foreign::connect(&self.server, &self.databases[shard as usize - 1]).await
    }

    /// How often each shard has changed its owner.
    pub async fn epochs(&self) -> Vec<i64> {
        let mut epochs = Vec::new();
        for shard in 1..=self.proxies.len() as u32 {
            epochs.push(epoch(&mut self.foreign(shard).await).await);
        }
        epochs
    }

    /// Makes further items, for this shard.
    pub fn items(&self, shard: u32, count: usize) -> Vec<(u64, EnqueueItem)> {
        (0..count).map(|_| self.item(shard)).collect()
    }

    /// A further item, for this shard.
    pub fn item(&self, shard: u32) -> (u64, EnqueueItem) {
        pinned(self.items.fetch_add(1, Ordering::Relaxed), shard)
    }

    /// How often a shard has been taken over.
    pub async fn take_overs(&self) -> f64 {
        metric_of_all(&self.nodes, "forebay_take_overs_total{").await
    }

    /// Waits until `more` further items have been stored, delivered and acked.
    pub async fn progress(&self, what: &str, more: u64) -> Counts {
        progress(&self.history, what, more).await
    }

    /// Waits until each shard stores an item.
    pub async fn all_store(&self) {
        let begun = Instant::now();
        for shard in 1..=u32::try_from(self.proxies.len()).expect("few shards") {
            let mut rpc = Rpc::new(self.nodes[0].channel(), &self.history);
            while rpc.enqueue(&[self.item(shard)], "").await != WorstOutcome::Done {
                assert!(begun.elapsed() < STORED_WITHIN, "{}", self.history.failure_reasons());
                sleep(RETRY_AFTER).await;
            }
        }
    }

    /// Heals all ways, waits until each shard stores items and clients go on, and stops them.
    pub async fn heal(&mut self) {
        self.proxies.iter().for_each(Proxy::pass);
        self.all_store().await;
        self.progress("load after the fault", 200).await;
        self.load.take().expect("a load").stop().await;
    }

    /// Heals all ways, drains the queue, and checks the history.
    pub async fn end(mut self) -> Counts {
        if self.load.is_some() {
            self.heal().await;
        }
        self.cluster.drain_and_check(&self.history, self.nodes).await
    }
}

/// How often a shard has changed its owner.
pub async fn epoch(foreign: &mut Foreign) -> i64 {
    foreign.number("SELECT epoch FROM fence WHERE id = 1").await
}

/// An item for this shard.
pub fn pinned(number: u64, shard: u32) -> (u64, EnqueueItem) {
    let item = EnqueueItem {
        topic: topics()[0].clone(),
        payload: payload(number).into(),
        shard: Some(shard),
        max_attempts: 1_000,
        ..EnqueueItem::default()
    };
    (number, item)
}
