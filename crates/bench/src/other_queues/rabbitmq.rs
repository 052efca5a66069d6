//! RabbitMQ: one durable queue per topic, persistent messages, publisher confirms.

mod server;

use std::{future, path::PathBuf, pin::Pin, time::Duration};

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties, ConsumerDelegate,
    message::DeliveryResult,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
        QueueDeclareOptions,
    },
    types::{AMQPValue, FieldTable},
};
use tokio::{sync::mpsc, time::timeout};

use super::{delays::refuse_delays, server_process::ServerProcess};
use crate::system::{
    BenchDelivery, Consumer, Durability, Item, Order, ProcessRole, Producer, System, SystemConfig,
};

/// Unacked messages of a consumer, over all its topics.
const PREFETCH: usize = 500;
/// Minimum per topic.
const PREFETCH_PER_TOPIC_MIN: usize = 50;
/// AMQP's delivery mode of a persistent message.
const PERSISTENT: u8 = 2;
/// Queues that are declared at the same time.
const DECLARES_IN_FLIGHT: usize = 16;

/// The kind of queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Classic, with priorities. A confirm follows the synced write to the message store.
    Priority,
    /// Quorum, with one replica here. A confirm follows the sync of its Raft log.
    Quorum,
}

/// Starts the server and declares the queues.
pub async fn start(program: PathBuf, kind: Type, config: &SystemConfig) -> anyhow::Result<Box<dyn System>> {
    let broker = server::start(&program).await?;
    let rabbit = RabbitMq { broker, kind, priorities: config.priorities };
    let connection = rabbit.broker.until_ready(|| rabbit.connect()).await?;
    let channel = connection.create_channel().await?;
    let declares = (0..config.topics).map(|topic| rabbit.declare(&channel, topic));
    stream::iter(declares).buffer_unordered(DECLARES_IN_FLIGHT).try_collect::<()>().await?;
    Ok(Box::new(rabbit))
}

struct RabbitMq {
    broker: ServerProcess,
    kind: Type,
    priorities: u8,
}

impl RabbitMq {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let uri = format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.broker.port());
        Ok(Connection::connect(&uri, ConnectionProperties::default()).await?)
    }

    /// RabbitMQ's number of the most urgent priority; 0 is the least urgent.
    fn highest(&self) -> u8 {
        self.priorities.saturating_sub(1).max(1)
    }

    async fn declare(&self, channel: &Channel, topic: u32) -> anyhow::Result<()> {
        let mut arguments = FieldTable::default();
        match self.kind {
            Type::Priority => arguments.insert("x-max-priority".into(), self.highest().into()),
            Type::Quorum => arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into())),
        };
        let options = QueueDeclareOptions { durable: true, ..Default::default() };
        channel.queue_declare(queue(topic).into(), options, arguments).await?;
        Ok(())
    }
}

fn queue(topic: u32) -> String {
    format!("t{topic}")
}

#[async_trait]
impl System for RabbitMq {
    fn durability(&self) -> Durability {
        Durability::OnDisk
    }

    fn order(&self) -> Order {
        match self.kind {
            Type::Priority => Order::Priority,
            Type::Quorum => Order::Fifo,
        }
    }

    fn batches_are_ordered(&self) -> bool {
        false
    }

    fn processes(&self) -> Vec<ProcessRole> {
        self.broker.processes()
    }

    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let queues = match self.kind {
            Type::Priority => format!("classic, durable, x-max-priority {}", self.highest()),
            Type::Quorum => "quorum, one replica".to_owned(),
        };
        let settings = [
            ("version", server::version(&self.broker)?),
            ("queues", queues),
            ("messages", "persistent".to_owned()),
            ("publisher confirms", "awaited per batch".to_owned()),
            ("consumer acks", "multiple, per batch; not confirmed".to_owned()),
            ("prefetch", format!("{PREFETCH} per consumer, at least {PREFETCH_PER_TOPIC_MIN} per topic")),
        ];
        Ok(settings.map(|(name, value)| (name.to_owned(), value)).into())
    }

    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>> {
        let connection = self.connect().await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Box::new(Publisher { channel, kind: self.kind, highest: self.highest(), _connection: connection }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        let connection = self.connect().await?;
        let channel = connection.create_channel().await?;
        let prefetch = (PREFETCH / topics.len().max(1)).max(PREFETCH_PER_TOPIC_MIN);
        channel.basic_qos(prefetch as u16, BasicQosOptions::default()).await?;
        let (pushed, deliveries) = mpsc::unbounded_channel();
        let mut consumers = Vec::with_capacity(topics.len());
        for topic in topics {
            let (queue, options) = (queue(topic), BasicConsumeOptions::default());
            let consumer =
                channel.basic_consume(queue.clone().into(), queue.into(), options, FieldTable::default());
            let consumer = consumer.await?;
            consumer.set_delegate(DeliveryForwarder { topic, to: pushed.clone() });
            consumers.push(consumer);
        }
        Ok(Box::new(Subscriber {
            deliveries,
            last: None,
            _consumers: consumers,
            channel,
            _connection: connection,
        }))
    }
}

struct Publisher {
    channel: Channel,
    kind: Type,
    highest: u8,
    _connection: Connection,
}

#[async_trait]
impl Producer for Publisher {
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()> {
        refuse_delays(&items)?;
        let queue = queue(topic);
        let mut confirms = Vec::with_capacity(items.len());
        for item in &items {
            let mut properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
            if self.kind == Type::Priority {
                // In RabbitMQ larger is more urgent.
                properties = properties.with_priority(self.highest.saturating_sub(item.priority));
            }
            let options = BasicPublishOptions::default();
            let publish = self.channel.basic_publish(
                "".into(),
                queue.as_str().into(),
                options,
                &item.payload,
                properties,
            );
            confirms.push(publish.await?);
        }
        for confirm in confirms {
            let confirm = confirm.await?;
            ensure!(confirm.is_ack(), "the server did not confirm a message: {confirm:?}");
        }
        Ok(())
    }
}

/// Forwards deliveries as they arrive. Those of all topics go into one channel in the order of their tags, so
/// that one ack covers all before it.
struct DeliveryForwarder {
    topic: u32,
    to: mpsc::UnboundedSender<(u32, DeliveryResult)>,
}

impl ConsumerDelegate for DeliveryForwarder {
    fn on_new_delivery(&self, delivery: DeliveryResult) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        // Sent here because the returned futures run in any order. A closed channel needs no deliveries.
        let _ = self.to.send((self.topic, delivery));
        Box::pin(future::ready(()))
    }
}

struct Subscriber {
    deliveries: mpsc::UnboundedReceiver<(u32, DeliveryResult)>,
    /// Tag of the last message that the last `take` returned.
    last: Option<u64>,
    _consumers: Vec<lapin::Consumer>,
    channel: Channel,
    _connection: Connection,
}

#[async_trait]
impl Consumer for Subscriber {
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<BenchDelivery>> {
        let mut items = Vec::new();
        let mut next = match timeout(wait, self.deliveries.recv()).await {
            Ok(first) => Some(first.context("the channel is closed")?),
            Err(_) => None,
        };
        while let Some((topic, delivery)) = next {
            let delivery = delivery?.context("the server ended the subscription")?;
            self.last = Some(delivery.delivery_tag);
            items.push(BenchDelivery { topic, payload: delivery.data.into() });
            next = if items.len() < max { self.deliveries.try_recv().ok() } else { None };
        }
        Ok(items)
    }

    async fn ack(&mut self) -> anyhow::Result<()> {
        if let Some(tag) = self.last.take() {
            self.channel.basic_ack(tag, BasicAckOptions { multiple: true }).await?;
        }
        Ok(())
    }
}
