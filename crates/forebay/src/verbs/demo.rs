//! A producer and a consumer, so that there is something to see.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use forebay_client::{
    Client, ClientConfig, Consumer, ConsumerConfig, Delivery, NewItem, Outcome, Producer, ProducerConfig,
};
use tokio::task::JoinHandle;

use crate::failure::Failure;

const NAMESPACE: &str = "demo";
/// One item each so often.
const PACE: Duration = Duration::from_millis(100);
/// How long one item takes; a little longer than its producer needs, for two at a time.
const WORK: Duration = Duration::from_millis(180);

/// They run.
pub struct Demo {
    producer: JoinHandle<()>,
    consumer: Consumer,
}

impl Demo {
    /// Starts both against this node.
    pub fn start(grpc: SocketAddr, http: SocketAddr) -> Result<Self, Failure> {
        let config = ClientConfig::new(format!("http://{}", local(grpc))).namespace(NAMESPACE);
        let client = Client::connect(config)?;
        tracing::info!("a demo runs: look at http://{}/", local(http));
        let consumer = ConsumerConfig::new(["mail", "report"]).concurrency(2);
        let consumer = Consumer::start(client.clone(), consumer, work);
        let producer = tokio::spawn(produce(Producer::start(client, ProducerConfig::default())));
        Ok(Self { producer, consumer })
    }

    /// Ends both; what the consumer has in hand it finishes.
    pub async fn stop(self) {
        self.producer.abort();
        match self.consumer.stop().await {
            Ok(report) => tracing::info!(acked = report.acked, retried = report.retried, "the demo ends"),
            Err(error) => tracing::warn!(%error, "the demo's consumer failed"),
        }
    }
}

async fn produce(producer: Producer) {
    let mut tick = tokio::time::interval(PACE);
    for number in 0_u32.. {
        tick.tick().await;
        let (topic, priority) = if number % 4 == 0 { ("report", 10) } else { ("mail", 0) };
        let item = NewItem::new(topic, format!("{topic} {number}")).priority(priority + (number % 3) as i32);
        // Every tenth waits for a while first.
        let item = if number % 10 == 0 { item.delay(Duration::from_secs(3)) } else { item };
        if let Err(error) = producer.send(item).await {
            tracing::warn!(%error, "the demo's producer failed");
            return;
        }
    }
}

async fn work(delivery: Delivery) -> Outcome {
    tokio::time::sleep(WORK).await;
    // Some items fail the first time.
    if delivery.item.attempt == 1 && delivery.item.payload.ends_with(b"7") {
        return Outcome::retry(Duration::from_secs(2), "the demo fails now and then");
    }
    Outcome::Ack
}

/// An address that can be connected to.
fn local(bound: SocketAddr) -> SocketAddr {
    match bound.ip().is_unspecified() {
        true => (Ipv4Addr::LOCALHOST, bound.port()).into(),
        false => bound,
    }
}
