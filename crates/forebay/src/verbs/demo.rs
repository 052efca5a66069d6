//! A producer and a consumer that show a queue at work.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use forebay_client::{
    Client, ClientConfig, Consumer, ConsumerConfig, Delivery, NewItem, Outcome, Producer, ProducerConfig,
};
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// Keeps the demo's items apart from others.
const NAMESPACE: &str = "demo";
/// The producer's interval.
const ENQUEUE_EVERY: Duration = Duration::from_millis(100);
/// How long the consumer works on an item. Two at a time are a little faster than the producer.
const HANDLER_TIME: Duration = Duration::from_millis(180);

/// A running producer and consumer.
pub struct Demo {
    /// Enqueues until it is aborted.
    producer: JoinHandle<()>,
    /// Processes what the producer enqueues.
    consumer: Consumer,
}

impl Demo {
    /// Starts both against this node.
    pub fn start(grpc: SocketAddr, http: SocketAddr) -> Result<Self, Failure> {
        let config = ClientConfig::new(format!("http://{}", local(grpc))).namespace(NAMESPACE);
        let client = Client::connect(config)?;
        tracing::info!("demo started; see http://{}/", local(http));
        let consumer = ConsumerConfig::new(["mail", "report"]).concurrency(2);
        let consumer = Consumer::start(client.clone(), consumer, handle);
        let producer = tokio::spawn(produce(Producer::start(client, ProducerConfig::default())));
        Ok(Self { producer, consumer })
    }

    /// Stops both. The consumer finishes the items that it is working on.
    pub async fn stop(self) {
        self.producer.abort();
        match self.consumer.stop().await {
            Ok(report) => tracing::info!(acked = report.acked, retried = report.retried, "demo stopped"),
            Err(error) => tracing::warn!(%error, "demo consumer failed"),
        }
    }
}

async fn produce(producer: Producer) {
    let mut tick = tokio::time::interval(ENQUEUE_EVERY);
    for number in 0_u32.. {
        tick.tick().await;
        let (topic, priority) = if number % 4 == 0 { ("report", 10) } else { ("mail", 0) };
        let item = NewItem::new(topic, format!("{topic} {number}")).priority(priority + (number % 3) as i32);
        // Every tenth item is delayed.
        let item = if number % 10 == 0 { item.delay(Duration::from_secs(3)) } else { item };
        if let Err(error) = producer.send(item).await {
            tracing::warn!(%error, "demo producer failed; no more items are enqueued");
            return;
        }
    }
}

async fn handle(delivery: Delivery) -> Outcome {
    tokio::time::sleep(HANDLER_TIME).await;
    // Some items fail the first time.
    if delivery.item.attempt == 1 && delivery.item.payload.ends_with(b"7") {
        return Outcome::retry(Duration::from_secs(2), "some items of the demo fail once");
    }
    Outcome::Ack
}

/// An address to connect to, also if every address is bound.
fn local(bound: SocketAddr) -> SocketAddr {
    match bound.ip().is_unspecified() {
        true => (Ipv4Addr::LOCALHOST, bound.port()).into(),
        false => bound,
    }
}
