//! A producer and a consumer on one topic, with the addresses of one or more nodes:
//! `cargo run --release -p forebay-client --example worker -- http://127.0.0.1:7420`

use std::time::Duration;

use forebay_client::{
    Client, ClientConfig, Consumer, ConsumerConfig, Delivery, Error, NewItem, Outcome, Producer,
    ProducerConfig, TlsConfig,
};

const TOPIC: &str = "example";
const ITEMS: usize = 10_000;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut addrs = std::env::args().skip(1);
    let first = addrs.next().unwrap_or_else(|| "http://127.0.0.1:7420".to_owned());
    let mut config = ClientConfig::new(first).endpoints(addrs);
    // Where nodes have certificates of an authority of your own, and ask for tokens.
    if let Ok(file) = std::env::var("FOREBAY_CA") {
        config = config.tls(TlsConfig::default().ca_certificate_file(file));
    }
    if let Ok(token) = std::env::var("FOREBAY_TOKEN") {
        config = config.token(token);
    }
    let client = Client::connect(config)?;

    let (done, mut left) = tokio::sync::mpsc::unbounded_channel();
    let config = ConsumerConfig::new([TOPIC]).concurrency(256);
    let consumer = Consumer::start(client.clone(), config, move |delivery: Delivery| {
        let done = done.clone();
        async move {
            if delivery.item.attempt == 1 && delivery.item.payload.ends_with(b"99") {
                return Outcome::retry(Duration::from_millis(100), "every hundredth fails once");
            }
            let _ = done.send(());
            Outcome::Ack
        }
    });

    let producer = Producer::start(client, ProducerConfig::default());
    let mut pending = Vec::with_capacity(ITEMS);
    for number in 0..ITEMS {
        let item =
            NewItem::new(TOPIC, format!("item {number}")).priority(if number % 10 == 0 { 1 } else { 5 });
        pending.push(producer.send(item).await?);
    }
    for answer in pending {
        answer.await?;
    }
    println!("{ITEMS} items are stored");

    for _ in 0..ITEMS {
        left.recv().await;
    }
    let report = consumer.stop().await?;
    println!("{} items are done, {} of them at the second attempt", report.acked, report.retried);
    producer.close().await
}
