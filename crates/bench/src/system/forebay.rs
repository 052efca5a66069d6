//! Forebay itself: a node of the real binary on its own database, reached over gRPC alone.

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

use super::{Consumer, Delivered, Item, Order, Part, Producer, Promise, Setup, System};
use crate::{
    database::{Database, StatementTime, execute, settings_of, start_server, statements_of, write_out},
    wait::wait_for,
};

/// Connections that producers and consumers share, as the threads of a few client processes would.
const CONNECTIONS: usize = 4;
const NAMESPACE: &str = "bench";
/// Of what the node said, so much is told when a run fails.
const LAST_LINES: usize = 10;
/// The longest answer that is read.
const ANSWER_BYTES: usize = 24 << 20;

/// The generated client.
pub type Client = QueueServiceClient<Channel>;

/// A running node and its database. The node ends first.
pub struct Forebay {
    node: SupervisedChild,
    channels: Vec<Channel>,
    next: AtomicUsize,
    setup: Setup,
    server: Option<Process>,
    folder: TempDir,
}

impl Forebay {
    /// Starts database and node, with empty shards.
    pub async fn start(setup: &Setup) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("forebay-bench-").tempdir()?;
        let at = folder.path().join("node");
        fs::create_dir(&at)?;
        let (server, arguments) = match setup.database {
            Database::Sqlite => (None, embedded(setup, &folder)),
            Database::Server { kind, binlog } => {
                let server = start_server(kind, binlog, setup)?;
                let config = folder.path().join("forebay.toml").display().to_string();
                fs::write(&config, configuration(setup, &server).await?)?;
                migrate(setup, &config)?;
                (Some(server), vec!["serve".to_owned(), "--config".to_owned(), config])
            }
        };
        let node = SupervisedChild::spawn(Command::new(&setup.forebay).args(&arguments), &at)?;
        let mut said = String::new();
        let ready = wait_for(Duration::from_secs(30), || {
            said = fs::read_to_string(at.join("output.log")).unwrap_or_default();
            said.lines().any(|line| line.starts_with("forebay ready")) || node.has_ended()
        });
        let ready = ready.await;
        let line = said.lines().find(|line| line.starts_with("forebay ready"));
        let Some(line) = line.filter(|_| ready) else { bail!("the node did not start:\n{said}") };
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("grpc="));
        let address = address.with_context(|| format!("no gRPC address in {line:?}"))?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
        let channels = (0..CONNECTIONS).map(|_| endpoint.connect_lazy()).collect();
        Ok(Self { node, channels, next: AtomicUsize::new(0), setup: setup.clone(), server, folder })
    }

    /// What a failed run is told with: whether the node is still there, and what it said last.
    pub async fn last_words(&self) -> String {
        // A call fails a moment before its node is seen to have ended.
        let ended = wait_for(Duration::from_millis(500), || self.node.has_ended()).await;
        let log = fs::read(self.folder.path().join("node/output.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        let state = if ended { "has ended" } else { "still runs" };
        format!("the node {state}; it said last:\n{last}")
    }

    /// Where the database spent its time, if that was asked for.
    pub async fn statements(&self) -> anyhow::Result<Vec<StatementTime>> {
        statements_of(self.server.as_ref(), &self.setup).await
    }

    /// A client, for calls that only Forebay has.
    pub fn client(&self) -> Client {
        let channel = &self.channels[self.next.fetch_add(1, Ordering::Relaxed) % CONNECTIONS];
        QueueServiceClient::new(channel.clone()).max_decoding_message_size(ANSWER_BYTES)
    }
}

/// The namespace that the benchmark works in.
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
    number.with_context(|| format!("an item of topic {name:?}"))
}

/// Stores items; each must be stored.
pub async fn enqueue(client: &mut Client, items: Vec<v1::EnqueueItem>) -> anyhow::Result<()> {
    let count = items.len();
    let request = v1::EnqueueRequest { namespace: namespace(), items, request_id: String::new() };
    let results = client.enqueue(request).await?.into_inner().results;
    ensure!(results.len() == count, "{count} items and {} results", results.len());
    match results.into_iter().find_map(|result| result.error) {
        Some(error) => bail!("an item was refused: {}", error.message),
        None => Ok(()),
    }
}

/// Ends deliveries; each must still be open.
pub async fn ack(client: &mut Client, receipts: Vec<String>) -> anyhow::Result<()> {
    let count = receipts.len();
    let acks = receipts.into_iter().map(|receipt| v1::Ack { receipt }).collect();
    let results = client.ack(v1::AckRequest { namespace: namespace(), acks }).await?.into_inner().results;
    ensure!(results.len() == count, "{count} acks and {} results", results.len());
    match results.into_iter().find_map(|result| result.error) {
        Some(error) => bail!("an ack was refused: {}", error.message),
        None => Ok(()),
    }
}

fn embedded(setup: &Setup, folder: &TempDir) -> Vec<String> {
    let data = folder.path().join("data").display().to_string();
    let shards = setup.shards.to_string();
    let flags =
        ["dev", "--data-dir", &data, "--shards", &shards, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    flags.map(str::to_owned).to_vec()
}

async fn configuration(setup: &Setup, server: &Process) -> anyhow::Result<String> {
    let mut text = "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\nlog = \"warn\"\n".to_owned();
    writeln!(text, "allow_not_durable = {}", !setup.server_flags.is_empty())?;
    for id in 1..=setup.shards {
        let name = format!("forebay_{id:04}");
        execute(&server.url(), &format!("CREATE DATABASE {name}")).await?;
        write!(text, "\n[[shard]]\nid = {id}\nurl = \"{}/{name}\"\n", server.url())?;
    }
    Ok(text)
}

fn migrate(setup: &Setup, config: &str) -> anyhow::Result<()> {
    let done = Command::new(&setup.forebay).args(["migrate", "--config", config]).output();
    let done = done.with_context(|| format!("running {}", setup.forebay.display()))?;
    ensure!(done.status.success(), "migrate: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

#[async_trait]
impl System for Forebay {
    fn promise(&self) -> Promise {
        Promise::Disk
    }

    fn order(&self) -> Order {
        Order::Priority
    }

    fn answers(&self) -> bool {
        true
    }

    fn parts(&self) -> Vec<Part> {
        let server = self.server.as_ref().and_then(Process::pid);
        let database = server.map(|pid| Part { role: "database", pid });
        [Part { role: "node", pid: self.node.pid() }].into_iter().chain(database).collect()
    }

    async fn settle(&self) -> anyhow::Result<()> {
        match &self.server {
            Some(server) => write_out(server).await,
            None => Ok(()),
        }
    }

    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut settings = vec![("shards".to_owned(), self.setup.shards.to_string())];
        settings.extend(settings_of(self.server.as_ref()).await?);
        Ok(settings)
    }

    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>> {
        Ok(Box::new(Puts { client: self.client() }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        Ok(Box::new(Takes { client: self.client(), topics, receipts: Vec::new() }))
    }
}

struct Puts {
    client: Client,
}

#[async_trait]
impl Producer for Puts {
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

struct Takes {
    client: Client,
    topics: Vec<u32>,
    receipts: Vec<String>,
}

#[async_trait]
impl Consumer for Takes {
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<Delivered>> {
        let (each, more) = (max / self.topics.len(), max % self.topics.len());
        let demand = |(place, &topic): (usize, &u32)| v1::TopicDemand {
            selector: Some(v1::topic_demand::Selector::Topic(topic_name(topic))),
            // At least one of each: with more topics than that an answer may have more than `max`.
            max_items: (each + usize::from(place < more)).max(1) as u32,
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
            Ok(Delivered { topic: topic_number(&item.topic)?, payload: item.payload })
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
