//! Forebay: a node of the real program on its own database, used through gRPC only.

use std::{
    fmt::Write as _,
    fs,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use async_trait::async_trait;
use forebay_proto::v1::{self, queue_service_client::QueueServiceClient};
use forebay_servers::{Process, SupervisedChild};
use prost_types::Timestamp;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use super::{
    BenchDelivery, Consumer, Durability, Item, Order, ProcessRole, Producer, System, SystemConfig,
    server::{StatementTime, start_server, statements_of},
};
use crate::{
    database::{Database, execute, flush_pages, settings_of},
    wait::wait_for,
};

/// Connections that producers and consumers share, like the threads of a few client processes.
const CONNECTIONS: usize = 4;
const NAMESPACE: &str = "bench";
/// Lines of the node's log that a failure reports.
const LOG_LINES: usize = 10;
/// The longest answer that a client accepts.
const ANSWER_BYTES_MAX: usize = 24 << 20;

/// The generated client.
pub type Client = QueueServiceClient<Channel>;

/// A running node and its database. The fields are dropped in this order, so the node ends first.
pub struct Forebay {
    /// The node.
    node: SupervisedChild,
    /// Connections that clients share.
    channels: Vec<Channel>,
    /// Chooses the connection of the next client.
    next: AtomicUsize,
    /// The configuration it was started with.
    config: SystemConfig,
    /// The database server; `None` for SQLite.
    server: Option<Process>,
    /// Holds the node's configuration, log and data; removed at the end.
    folder: TempDir,
}

impl Forebay {
    /// Starts a database with empty shards, and the node.
    pub async fn start(config: &SystemConfig) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("forebay-bench-").tempdir()?;
        let at = folder.path().join("node");
        fs::create_dir(&at)?;
        let (server, arguments) = match config.database {
            Database::Sqlite => (None, embedded_arguments(config, &folder)),
            Database::Server { kind, binlog } => {
                let server = start_server(kind, binlog, config)?;
                let config_file = folder.path().join("forebay.toml").display().to_string();
                fs::write(&config_file, configuration(config, &server).await?)?;
                migrate(config, &config_file)?;
                (Some(server), vec!["serve".to_owned(), "--config".to_owned(), config_file])
            }
        };
        let node = SupervisedChild::spawn(Command::new(&config.forebay).args(&arguments), &at)?;
        let mut log = String::new();
        let ready = wait_for(Duration::from_secs(30), || {
            log = fs::read_to_string(at.join("output.log")).unwrap_or_default();
            log.lines().any(|line| line.starts_with("forebay ready")) || node.has_ended()
        });
        let ready = ready.await;
        let line = log.lines().find(|line| line.starts_with("forebay ready"));
        let Some(line) = line.filter(|_| ready) else { bail!("the node did not start; its log:\n{log}") };
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("grpc="));
        let address = address.with_context(|| format!("the node printed no gRPC address: {line:?}"))?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
        let channels = (0..CONNECTIONS).map(|_| endpoint.connect_lazy()).collect();
        Ok(Self { node, channels, next: AtomicUsize::new(0), config: config.clone(), server, folder })
    }

    /// Describes the node for the report of a failure: whether it runs, and the end of its log.
    pub async fn describe_node(&self) -> String {
        // A call fails a moment before the end of its node can be observed.
        let ended = wait_for(Duration::from_millis(500), || self.node.has_ended()).await;
        let log = fs::read(self.folder.path().join("node/output.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        let state = if ended { "has ended" } else { "is still running" };
        format!("the node {state}; the end of its log:\n{last}")
    }

    /// The database's time by statement, if requested.
    pub async fn statements(&self) -> anyhow::Result<Vec<StatementTime>> {
        statements_of(self.server.as_ref(), &self.config).await
    }

    /// A client, for calls that other queues do not have.
    pub fn client(&self) -> Client {
        let channel = &self.channels[self.next.fetch_add(1, Ordering::Relaxed) % CONNECTIONS];
        QueueServiceClient::new(channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }
}

/// The namespace of the benchmark.
pub fn namespace() -> String {
    NAMESPACE.to_owned()
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

/// Enqueues items. Fails if any item is refused.
pub async fn enqueue(client: &mut Client, items: Vec<v1::EnqueueItem>) -> anyhow::Result<()> {
    let count = items.len();
    let request = v1::EnqueueRequest { namespace: namespace(), items, ..Default::default() };
    let results = client.enqueue(request).await?.into_inner().results;
    ensure!(results.len() == count, "enqueue of {count} items: {} results", results.len());
    match results.into_iter().find_map(|result| result.error) {
        Some(error) => bail!("an item was refused: {}", error.message),
        None => Ok(()),
    }
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

fn embedded_arguments(config: &SystemConfig, folder: &TempDir) -> Vec<String> {
    let data = folder.path().join("data").display().to_string();
    let shards = config.shards.to_string();
    let flags =
        ["dev", "--data-dir", &data, "--shards", &shards, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    flags.map(str::to_owned).to_vec()
}

async fn configuration(config: &SystemConfig, server: &Process) -> anyhow::Result<String> {
    let mut text = "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\nlog = \"warn\"\n".to_owned();
    // The other systems' connections are not encrypted either.
    writeln!(text, "mysql_tls = \"off\"")?;
    writeln!(text, "allow_not_durable = {}", !config.server_flags.is_empty())?;
    for id in 1..=config.shards {
        let name = format!("forebay_{id:04}");
        execute(&server.url(), &format!("CREATE DATABASE {name}")).await?;
        write!(text, "\n[[shard]]\nid = {id}\nurl = \"{}/{name}\"\n", server.url())?;
    }
    Ok(text)
}

fn migrate(config: &SystemConfig, config_file: &str) -> anyhow::Result<()> {
    let done = Command::new(&config.forebay).args(["migrate", "--config", config_file]).output();
    let done = done.with_context(|| format!("cannot run {}", config.forebay.display()))?;
    ensure!(done.status.success(), "forebay migrate failed: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
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
        [ProcessRole { role: "node", pid: self.node.pid() }].into_iter().chain(database).collect()
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
        Ok(Box::new(ForebayProducer { client: self.client() }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        Ok(Box::new(ForebayConsumer { client: self.client(), topics, receipts: Vec::new() }))
    }
}

struct ForebayProducer {
    client: Client,
}

#[async_trait]
impl Producer for ForebayProducer {
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()> {
        let topic = topic_name(topic);
        let item = |item: Item| v1::EnqueueItem {
            topic: topic.clone(),
            priority: i32::from(item.priority),
            payload: item.payload,
            schedule: item.due.map(|due| v1::enqueue_item::Schedule::DeliverAfter(Timestamp::from(due))),
            ..Default::default()
        };
        enqueue(&mut self.client, items.into_iter().map(item).collect()).await
    }
}

struct ForebayConsumer {
    client: Client,
    topics: Vec<u32>,
    receipts: Vec<String>,
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
        let items = self.client.dequeue(request).await?.into_inner().items;
        let delivered = |item: v1::DequeuedItem| {
            self.receipts.push(item.receipt);
            Ok(BenchDelivery { topic: topic_number(&item.topic)?, payload: item.payload })
        };
        items.into_iter().map(delivered).collect()
    }

    async fn ack(&mut self) -> anyhow::Result<()> {
        match std::mem::take(&mut self.receipts) {
            none if none.is_empty() => Ok(()),
            receipts => ack(&mut self.client, receipts).await,
        }
    }
}
