//! Producers and consumers that show a queue at work: topics that flow, one that fails, one that nobody
//! consumes, one that is paused, and one whose consumer waits.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use forebay_client::{
    Client, ClientConfig, Consumer, ConsumerConfig, Delivery, NewItem, Outcome, Producer, ProducerConfig,
    v1::{PauseTopicRequest, Side},
};
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// Keeps the demo's items apart from others.
const NAMESPACE: &str = "demo";
/// The producer's interval.
const ENQUEUE_EVERY: Duration = Duration::from_millis(100);
/// How long a consumer works on an item. Two at a time are a little faster than the producer.
const HANDLER_TIME: Duration = Duration::from_millis(180);
/// Why a topic of the demo is paused.
const PAUSE_NOTE: &str = "the importer is being replaced (demo)";

/// Running producers and consumers.
pub struct Demo {
    /// Enqueues until it is aborted.
    producer: JoinHandle<()>,
    /// Process what the producer enqueues.
    consumers: Vec<Consumer>,
}

impl Demo {
    /// Starts them against this node.
    pub fn start(grpc: SocketAddr, http: SocketAddr) -> Result<Self, Failure> {
        let config = ClientConfig::new(format!("http://{}", local(grpc))).namespace(NAMESPACE);
        let client = Client::connect(config)?;
        tracing::info!("demo started; see http://{}/", local(http));
        let consumer = |name: &str, topics: &[&str], at_once| {
            let config = ConsumerConfig::new(topics.iter().copied()).concurrency(at_once);
            let config = ConsumerConfig { name: name.to_owned(), ..config };
            Consumer::start(client.clone(), config, handle)
        };
        let consumers = vec![
            consumer("mailer-1", &["mail", "report"], 2),
            consumer("biller-1", &["invoice"], 1),
            consumer("texter-1", &["sms"], 1),
        ];
        let producer = tokio::spawn(produce(client));
        Ok(Self { producer, consumers })
    }

    /// Stops all of them. The consumers finish the items that they are working on.
    pub async fn stop(self) {
        self.producer.abort();
        for consumer in self.consumers {
            match consumer.stop().await {
                Ok(report) => tracing::info!(acked = report.acked, retried = report.retried, "demo stopped"),
                Err(error) => tracing::warn!(%error, "demo consumer failed"),
            }
        }
    }
}

async fn produce(client: Client) {
    let pause = PauseTopicRequest {
        namespace: client.namespace().to_owned(),
        topic: "import".to_owned(),
        sides: vec![Side::Dequeue.into()],
        note: PAUSE_NOTE.to_owned(),
        ..Default::default()
    };
    if let Err(error) = client.ask(pause).await {
        tracing::warn!(%error, "the demo could not pause a topic");
    }
    let producer = Producer::start(client, ProducerConfig::default());
    let mut tick = tokio::time::interval(ENQUEUE_EVERY);
    for number in 0_u32.. {
        tick.tick().await;
        if let Err(error) = producer.send(item(number)).await {
            tracing::warn!(%error, "demo producer failed; no more items are enqueued");
            return;
        }
    }
}

/// The item of a number.
fn item(number: u32) -> NewItem {
    let (topic, priority) = match number % 20 {
        // Nobody consumes these.
        3 => ("webhook", 0),
        // Nor these, as they are paused.
        11 => ("import", 0),
        // Some of these fail for good.
        5 | 9 | 15 => ("invoice", 0),
        n if n % 4 == 0 => ("report", 10),
        _ => ("mail", 0),
    };
    let payload =
        format!("{{\"kind\":\"{topic}\",\"number\":{number},\"to\":\"user-{}@example.com\"}}", number % 97);
    let item = NewItem::new(topic, payload).priority(priority + (number % 3) as i32);
    // Every tenth item is delayed.
    if number.is_multiple_of(10) { item.delay(Duration::from_secs(3)) } else { item }
}

async fn handle(delivery: Delivery) -> Outcome {
    tokio::time::sleep(HANDLER_TIME).await;
    let item = &delivery.item;
    if item.topic == "invoice" {
        return match number_of(&item.payload) % 6 {
            1 => Outcome::reject(format!("no customer {}", number_of(&item.payload))),
            3 => Outcome::reject(format!(
                "payment provider timed out after {} ms",
                3_000 + number_of(&item.payload)
            )),
            _ => Outcome::Ack,
        };
    }
    // Some items fail the first time.
    if item.attempt == 1 && number_of(&item.payload) % 10 == 7 {
        return Outcome::retry(Duration::from_secs(2), "some items of the demo fail once");
    }
    Outcome::Ack
}

/// The number in a payload of the demo.
fn number_of(payload: &[u8]) -> u64 {
    let value: Option<serde_json::Value> = serde_json::from_slice(payload).ok();
    value.and_then(|value| value.get("number")?.as_u64()).unwrap_or(0)
}

/// An address to connect to, also if every address is bound.
fn local(bound: SocketAddr) -> SocketAddr {
    match bound.ip().is_unspecified() {
        true => (Ipv4Addr::LOCALHOST, bound.port()).into(),
        false => bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_has_every_kind_of_topic() {
        let topics: std::collections::BTreeSet<_> = (0..100).map(|number| item(number).topic).collect();
        let all = ["import", "invoice", "mail", "report", "webhook"];
        assert_eq!(topics.iter().map(String::as_str).collect::<Vec<_>>(), all);
        assert_eq!(number_of(&item(47).payload), 47);
    }
}
