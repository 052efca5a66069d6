//! NATS JetStream: one stream in files, with one subject and one pull consumer per topic.

use std::{path::PathBuf, process::Command, time::Duration};

use anyhow::{Context as _, anyhow, ensure};
use async_nats::{
    Client,
    jetstream::{
        self,
        consumer::{AckPolicy, pull},
        stream::{Config, RetentionPolicy, StorageType},
    },
};
use async_trait::async_trait;
use futures_util::{
    FutureExt as _, Stream, StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use tokio::time::timeout;

use super::{delays::refuse_delays, server_process::ServerProcess};
use crate::system::{BenchDelivery, Consumer, Durability, Item, Order, ProcessRole, Producer, System};

const STREAM: &str = "items";
/// Messages that a consumer requests in advance, over all its topics.
const PREFETCH: usize = 500;
/// Minimum per topic.
const PREFETCH_PER_TOPIC_MIN: usize = 50;
/// Unacked messages of a topic, over all its consumers. The default of 1,000 is too small for several
/// consumers.
const MAX_ACK_PENDING: i64 = 20_000;
/// Lifetime of a request for messages.
const EXPIRES: Duration = Duration::from_secs(30);
/// Consumers that are created at the same time.
const CREATES_IN_FLIGHT: usize = 16;

/// Starts the server.
pub async fn start(program: PathBuf) -> anyhow::Result<Box<dyn System>> {
    let broker = ServerProcess::start("nats-server", |folder, port| {
        let mut command = Command::new(&program);
        command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(folder.join("data"));
        Ok(command)
    });
    let nats = Nats { broker: broker.await? };
    let client = nats.broker.until_ready(|| nats.connect()).await?;
    let config = Config {
        name: STREAM.to_owned(),
        subjects: vec!["t.*".to_owned()],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        ..Config::default()
    };
    let context = jetstream::new(client);
    nats.broker.until_ready(|| context.create_stream(config.clone())).await?;
    Ok(Box::new(nats))
}

struct Nats {
    broker: ServerProcess,
}

impl Nats {
    async fn connect(&self) -> anyhow::Result<Client> {
        Ok(async_nats::connect(format!("127.0.0.1:{}", self.broker.port())).await?)
    }
}

fn subject(topic: u32) -> String {
    format!("t.{topic}")
}

#[async_trait]
impl System for Nats {
    fn durability(&self) -> Durability {
        Durability::SoonOnDisk
    }

    fn order(&self) -> Order {
        Order::Fifo
    }

    fn batches_are_ordered(&self) -> bool {
        false
    }

    fn processes(&self) -> Vec<ProcessRole> {
        self.broker.processes()
    }

    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let version = self.connect().await?.server_info().version;
        let settings = [
            ("version", version),
            ("stream", "file, work queue, one replica".to_owned()),
            ("sync", "as shipped: every 2 minutes".to_owned()),
            ("publish", "acks awaited per batch".to_owned()),
            ("consumers", "durable, pull, explicit acks; not confirmed, flushed per batch".to_owned()),
            ("prefetch", format!("{PREFETCH} per consumer, at least {PREFETCH_PER_TOPIC_MIN} per topic")),
            ("max_ack_pending", MAX_ACK_PENDING.to_string()),
        ];
        Ok(settings.map(|(name, value)| (name.to_owned(), value)).into())
    }

    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>> {
        Ok(Box::new(Publisher { context: jetstream::new(self.connect().await?) }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        let client = self.connect().await?;
        let stream = jetstream::new(client.clone()).get_stream(STREAM).await?;
        let prefetch = (PREFETCH / topics.len().max(1)).max(PREFETCH_PER_TOPIC_MIN);
        let pulls = topics.into_iter().map(|topic| pull_of(&stream, topic, prefetch));
        let pulls: Vec<Pull> = stream::iter(pulls).buffer_unordered(CREATES_IN_FLIGHT).try_collect().await?;
        Ok(Box::new(Puller { client, messages: stream::select_all(pulls), taken: Vec::new() }))
    }
}

type Pull = BoxStream<'static, anyhow::Result<(u32, jetstream::Message)>>;

/// The messages of one topic. All consumers of a topic share one durable consumer of the server: a work queue
/// does not allow two with the same subject.
async fn pull_of(stream: &jetstream::stream::Stream, topic: u32, prefetch: usize) -> anyhow::Result<Pull> {
    let name = format!("t{topic}");
    let config = pull::Config {
        durable_name: Some(name.clone()),
        filter_subject: subject(topic),
        ack_policy: AckPolicy::Explicit,
        max_ack_pending: MAX_ACK_PENDING,
        max_waiting: 10_000,
        ..pull::Config::default()
    };
    let consumer = stream.get_or_create_consumer(&name, config).await?;
    let messages = consumer.stream().max_messages_per_batch(prefetch).expires(EXPIRES).messages().await?;
    Ok(tagged(topic, messages).boxed())
}

fn tagged(
    topic: u32,
    messages: pull::Stream,
) -> impl Stream<Item = anyhow::Result<(u32, jetstream::Message)>> + Send {
    messages.map(move |message| Ok((topic, message?)))
}

struct Publisher {
    context: jetstream::Context,
}

#[async_trait]
impl Producer for Publisher {
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()> {
        refuse_delays(&items)?;
        let mut acks = Vec::with_capacity(items.len());
        for item in items {
            acks.push(self.context.publish(subject(topic), item.payload).await?);
        }
        for ack in acks {
            ensure!(!ack.await?.duplicate, "the server took a new message for a duplicate");
        }
        Ok(())
    }
}

struct Puller {
    client: Client,
    messages: stream::SelectAll<Pull>,
    /// Messages that the last `take` returned.
    taken: Vec<jetstream::Message>,
}

#[async_trait]
impl Consumer for Puller {
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<BenchDelivery>> {
        self.taken.clear();
        let mut items = Vec::new();
        let mut next = match timeout(wait, self.messages.next()).await {
            Ok(first) => Some(first.context("the server ended the subscription")?),
            Err(_) => None,
        };
        while let Some(message) = next {
            let (topic, message) = message?;
            items.push(BenchDelivery { topic, payload: message.payload.clone() });
            self.taken.push(message);
            next = if items.len() < max { self.messages.next().now_or_never().flatten() } else { None };
        }
        Ok(items)
    }

    async fn ack(&mut self) -> anyhow::Result<()> {
        for message in self.taken.drain(..) {
            message.ack().await.map_err(|error| anyhow!(error))?;
        }
        Ok(self.client.flush().await?)
    }
}
