//! Forebay: nodes of the real program on a database of their own, used through gRPC only.

use std::{
    collections::HashMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use async_trait::async_trait;
use forebay_proto::{
    NEXT_SHARD_HEADER, NODE_HEADER,
    v1::{self, queue_service_client::QueueServiceClient},
};
use forebay_servers::Process;
use prost_types::Timestamp;
use tempfile::TempDir;
use tonic::{
    Response,
    transport::{Channel, Endpoint},
};

use super::{
    BenchDelivery, Consumer, Durability, Item, Order, ProcessRole, Producer, System, SystemConfig,
    access::{Access, HintedNode, Turns},
    nodes::{BenchNode, node_number, start_nodes},
    server::{StatementTime, start_server, statements_of},
};
use crate::{
    database::{Database, flush_pages, settings_of},
    wait::wait_for,
};

/// Connections to a node that producers and consumers share, like the threads of a few client processes.
const CONNECTIONS: usize = 4;
const NAMESPACE: &str = "bench";
/// Lines of the node's log that a failure reports.
const LOG_LINES: usize = 10;
/// The longest answer that a client accepts.
const ANSWER_BYTES_MAX: usize = 24 << 20;

/// The generated client.
pub type Client = QueueServiceClient<Channel>;

/// Running nodes and their database. The fields are dropped in this order, so the nodes end first.
pub struct Forebay {
    /// The nodes.
    nodes: Vec<BenchNode>,
    /// Clients of them.
    clients: Arc<Clients>,
    /// The configuration it was started with.
    config: SystemConfig,
    /// The database server; `None` for SQLite.
    server: Option<Process>,
    /// Holds the nodes' configuration, logs and data; removed at the end.
    folder: TempDir,
}

impl Forebay {
    /// Starts a database with empty shards, and the nodes.
    pub async fn start(config: &SystemConfig) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("forebay-bench-").tempdir()?;
        let server = match config.database {
            Database::Sqlite => None,
            Database::Server { kind, binlog } => Some(start_server(kind, binlog, config)?),
        };
        let nodes = start_nodes(config, server.as_ref(), &folder).await?;
        let mut channels = Vec::new();
        for node in &nodes {
            let endpoint = Endpoint::from_shared(format!("http://{}", node.grpc))?.tcp_nodelay(true);
            channels.push((0..CONNECTIONS).map(|_| endpoint.connect_lazy()).collect());
        }
        let (next, access, calls) = (Turns::default(), config.access, AtomicU64::new(0));
        let clients = Arc::new(Clients { channels, next, access, calls });
        Ok(Self { nodes, clients, config: config.clone(), server, folder })
    }

    /// Describes the nodes for the report of a failure: whether each runs, and the end of its log.
    pub async fn describe_nodes(&self) -> String {
        // A call fails a moment before the end of its node can be observed.
        let has_ended = || self.nodes.iter().any(|node| node.process.has_ended());
        wait_for(Duration::from_millis(500), has_ended).await;
        let describe = |(number, node): (usize, &BenchNode)| {
            let log =
                fs::read(self.folder.path().join(format!("node{number}/output.log"))).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            let state = if node.process.has_ended() { "has ended" } else { "is still running" };
            format!("node {number} {state}; the end of its log:\n{last}")
        };
        self.nodes.iter().enumerate().map(describe).collect::<Vec<_>>().join("\n")
    }

    /// The database's time by statement, if requested.
    pub async fn statements(&self) -> anyhow::Result<Vec<StatementTime>> {
        statements_of(self.server.as_ref(), &self.config).await
    }

    /// A client of the first node, for calls that other queues do not have.
    pub fn client(&self) -> Client {
        self.clients.of(0)
    }
}

/// Clients of all nodes.
struct Clients {
    /// Connections that clients share, by node.
    channels: Vec<Vec<Channel>>,
    /// Chooses the connection of the next client.
    next: Turns,
    /// Which node is called.
    access: Access,
    /// Numbers the calls that have ids.
    calls: AtomicU64,
}

impl Clients {
    /// A client of a node.
    fn of(&self, node: usize) -> Client {
        let channels = &self.channels[node];
        let channel = channels[self.next.next(channels.len())].clone();
        QueueServiceClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX)
    }
}

/// The namespace of the benchmark.
pub fn namespace() -> String {
    NAMESPACE.to_owned()
}

/// The begin of all topics' names.
pub fn topic_prefix() -> String {
    "t".to_owned()
}

/// The name of topic number `topic`.
pub fn topic_name(topic: u32) -> String {
    format!("t{topic}")
}

/// The number of a topic.
pub fn topic_number(name: &str) -> anyhow::Result<u32> {
    let number = name.strip_prefix('t').and_then(|number| number.parse().ok());
    number.with_context(|| format!("delivered from an unknown topic {name:?}"))
}

/// An answer's proposal for the next call.
#[derive(Debug, Clone, Copy)]
pub struct NextShard {
    /// The shard.
    shard: u32,
    /// Its owner.
    node: Option<usize>,
}

/// Enqueues items. Fails if any is refused.
pub async fn enqueue(client: &mut Client, request: v1::EnqueueRequest) -> anyhow::Result<Option<NextShard>> {
    let count = request.items.len();
    let answer = client.enqueue(request).await?;
    let node = named_node(&answer);
    let shard = answer.metadata().get(NEXT_SHARD_HEADER).and_then(|shard| shard.to_str().ok()?.parse().ok());
    let next = shard.map(|shard| NextShard { shard, node });
    let results = answer.into_inner().results;
    ensure!(results.len() == count, "enqueue of {count} items: {} results", results.len());
    match results.into_iter().find_map(|result| result.error) {
        Some(error) => bail!("an item was refused: {}", error.message),
        None => Ok(next),
    }
}

/// The number of the node that an answer names.
fn named_node<A>(answer: &Response<A>) -> Option<usize> {
    node_number(answer.metadata().get(NODE_HEADER)?.to_str().ok()?)
}

/// Acks deliveries. Fails if any ack is refused.
pub async fn ack(client: &mut Client, receipts: Vec<String>) -> anyhow::Result<()> {
    let count = receipts.len();
    let acks = receipts.into_iter().map(|receipt| v1::Ack { receipt }).collect();
    let results = client.ack(v1::AckRequest { namespace: namespace(), acks }).await?.into_inner().results;
    ensure!(results.len() == count, "ack of {count} items: {} results", results.len());
    match results.into_iter().find_map(|result| result.error) {
        Some(error) => bail!("an ack was refused: {}", error.message),
        None => Ok(()),
    }
}

#[async_trait]
impl System for Forebay {
    fn durability(&self) -> Durability {
        Durability::OnDisk
    }

    fn order(&self) -> Order {
        Order::Priority
    }

    fn batches_are_ordered(&self) -> bool {
        true
    }

    fn processes(&self) -> Vec<ProcessRole> {
        let server = self.server.as_ref().and_then(Process::pid);
        let database = server.map(|pid| ProcessRole { role: "database", pid });
        let nodes = self.nodes.iter().map(|node| ProcessRole { role: "node", pid: node.process.pid() });
        nodes.chain(database).collect()
    }

    async fn flush(&self) -> anyhow::Result<()> {
        match &self.server {
            Some(server) => flush_pages(server).await,
            None => Ok(()),
        }
    }

    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut settings = vec![("shards".to_owned(), self.config.shards.to_string())];
        settings.extend(settings_of(self.server.as_ref()).await?);
        Ok(settings)
    }

    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>> {
        let (clients, turns) = (self.clients.clone(), Turns::default());
        Ok(Box::new(ForebayProducer { clients, turns, next_shards: HashMap::new() }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        let (clients, turns) = (self.clients.clone(), Turns::default());
        let hinted = HintedNode::default();
        Ok(Box::new(ForebayConsumer { clients, turns, hinted, topics, receipts: Vec::new() }))
    }
}

struct ForebayProducer {
    clients: Arc<Clients>,
    /// Calls of this one.
    turns: Turns,
    /// Proposals of the last answers, by topic.
    next_shards: HashMap<u32, NextShard>,
}

#[async_trait]
impl Producer for ForebayProducer {
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()> {
        let Clients { access, channels, .. } = &*self.clients;
        let next = self.next_shards.get(&topic).copied();
        let owner = next.and_then(|next| next.node);
        let node = owner.unwrap_or_else(|| access.of_producer(topic, channels.len(), &self.turns));
        let mut client = self.clients.of(node);
        let (number, topic) = (topic, topic_name(topic));
        let item = |item: Item| v1::EnqueueItem {
            topic: topic.clone(),
            priority: i32::from(item.priority),
            payload: item.payload,
            schedule: item.due.map(|due| v1::enqueue_item::Schedule::DeliverAfter(Timestamp::from(due))),
            ..Default::default()
        };
        let items = items.into_iter().map(item).collect();
        let mut request = v1::EnqueueRequest { namespace: namespace(), items, ..Default::default() };
        if *access == Access::AsHinted {
            request.request_id = format!("call-{}", self.clients.calls.fetch_add(1, Ordering::Relaxed));
            request.shard = next.map(|next| next.shard);
            let next = enqueue(&mut client, request).await?;
            self.next_shards.extend(next.map(|next| (number, next)));
            return Ok(());
        }
        enqueue(&mut client, request).await?;
        Ok(())
    }
}

struct ForebayConsumer {
    clients: Arc<Clients>,
    /// Calls of this one.
    turns: Turns,
    /// The node that it calls, if it goes by what answers say.
    hinted: HintedNode,
    topics: Vec<u32>,
    receipts: Vec<String>,
}

impl ForebayConsumer {
    fn client(&self) -> Client {
        let Clients { access, channels, .. } = &*self.clients;
        self.clients.of(access.of_consumer(&self.topics, channels.len(), &self.turns, &self.hinted))
    }
}

#[async_trait]
impl Consumer for ForebayConsumer {
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<BenchDelivery>> {
        let (each, more) = (max / self.topics.len(), max % self.topics.len());
        let demand = |(index, &topic): (usize, &u32)| v1::TopicDemand {
            selector: Some(v1::topic_demand::Selector::Topic(topic_name(topic))),
            // At least one per topic, so an answer may exceed `max` if there are many topics.
            max_items: (each + usize::from(index < more)).max(1) as u32,
        };
        let request = v1::DequeueRequest {
            namespace: namespace(),
            demands: self.topics.iter().enumerate().map(demand).collect(),
            wait: Some(prost_types::Duration::try_from(wait)?),
            ..Default::default()
        };
        let answer = self.client().dequeue(request).await?;
        named_node(&answer).into_iter().for_each(|node| self.hinted.learn(node));
        let items = answer.into_inner().items;
        let delivered = |item: v1::DequeuedItem| {
            self.receipts.push(item.receipt);
            Ok(BenchDelivery { topic: topic_number(&item.topic)?, payload: item.payload })
        };
        items.into_iter().map(delivered).collect()
    }

    async fn ack(&mut self) -> anyhow::Result<()> {
        match std::mem::take(&mut self.receipts) {
            none if none.is_empty() => Ok(()),
            receipts => ack(&mut self.client(), receipts).await,
        }
    }
}
