//! `forebay dequeue`

use std::time::Duration;

use clap::Args;
use forebay_client::{Client, DequeueCall, Dequeued, Error};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{connection::Connection, settled};
use crate::{
    failure::Failure,
    output::{self, Output},
};

/// The longest long poll of one call.
const POLL_TIMEOUT: Duration = Duration::from_secs(20);

/// The flags.
#[derive(Args)]
pub struct Dequeue {
    /// Server, namespace and output format.
    #[command(flatten)]
    connection: Connection,
    /// The topic to dequeue from
    #[arg(long)]
    topic: String,
    /// The most items to dequeue
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max: u32,
    /// How long to wait for an item if none is ready, as in 10s
    #[arg(long, value_parser = humantime::parse_duration, default_value = "0s")]
    wait: Duration,
    /// Acknowledge the items after they are printed
    #[arg(long)]
    ack: bool,
}

impl Dequeue {
    /// Dequeues items, prints them, and acknowledges them if asked to.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let items = self.take(&client).await?;
        self.print(&items)?;
        if !self.ack {
            return Ok(());
        }
        // Acknowledged after printing, so that an item that could not be printed is delivered again.
        let receipts: Vec<_> =
            items.into_iter().map(|item| item.receipt).filter(|receipt| !receipt.is_empty()).collect();
        if receipts.is_empty() {
            return Ok(());
        }
        settled::first_failure(client.ack(receipts).await?)
    }

    /// Dequeues, with several long polls if the wait is longer than one.
    async fn take(&self, client: &Client) -> Result<Vec<Dequeued>, Error> {
        let end = Instant::now() + self.wait;
        loop {
            let wait = end.saturating_duration_since(Instant::now()).min(POLL_TIMEOUT);
            let items = client.dequeue(DequeueCall::topic(&self.topic, self.max).wait(wait)).await?;
            if !items.is_empty() || Instant::now() >= end {
                return Ok(items);
            }
        }
    }

    fn print(&self, items: &[Dequeued]) -> std::io::Result<()> {
        match self.connection.output {
            Output::Json => {
                let items: Vec<Value> = items.iter().map(to_json).collect();
                output::json(&json!({ "items": items }))
            }
            Output::Table if items.is_empty() => {
                eprintln!("no item is ready");
                Ok(())
            }
            Output::Table => {
                let rows: Vec<_> = items.iter().map(to_row).collect();
                output::table(["ITEM", "PRIORITY", "ATTEMPT", "RECEIPT", "PAYLOAD"], &rows)
            }
        }
    }
}

fn to_row(item: &Dequeued) -> [String; 5] {
    [
        item.item_id.clone(),
        item.priority.to_string(),
        item.attempt.to_string(),
        if item.receipt.is_empty() { "-".to_owned() } else { item.receipt.clone() },
        output::cell(&item.payload),
    ]
}

fn to_json(item: &Dequeued) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    put("item_id", item.item_id.as_str().into());
    put("receipt", item.receipt.as_str().into());
    put("topic", item.topic.as_str().into());
    put("priority", item.priority.into());
    put("attempt", item.attempt.into());
    put("headers", json!(item.headers));
    put("enqueued_at", output::time(item.enqueued_at).into());
    put("lease_expires_at", item.lease_expires_at.map(output::time).into());
    put("expires_at", item.expires_at.map(output::time).into());
    output::put_bytes(&mut object, "payload", &item.payload);
    output::put_bytes(&mut object, "metadata", &item.metadata);
    Value::Object(object)
}
