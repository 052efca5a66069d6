//! `forebay dequeue`

use std::{
    io::{self, Write as _},
    time::Duration,
};

use clap::Args;
use forebay_client::{Client, Demand, DequeueCall, Dequeued, Error};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{connection::Connection, settled};
use crate::{
    failure::{Failure, Status},
    output,
};

/// The longest long poll of one call.
const POLL_TIMEOUT: Duration = Duration::from_secs(20);

/// How items are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Columns for people.
    Table,
    /// One JSON document. Payloads and metadata are base64, as in gRPC's JSON.
    Json,
    /// The payloads as they are. If more than one item may come, each ends with a newline. Receipts go to
    /// stderr.
    Raw,
}

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dequeue --topic mail --max 10 --wait 5s --ack
  forebay dequeue --topic urgent --topic mail --lease 5m
  forebay dequeue --topic mail --ack --output raw > letter.txt
  forebay dequeue --topic mail --output json")]
pub struct Dequeue {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// How items are printed
    #[arg(long, value_enum, default_value = "table")]
    output: Output,
    /// The topic to dequeue from; may be given several times
    #[arg(long = "topic", required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// The most items to dequeue of each topic; together at most 1000
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max: u32,
    /// How long to wait for an item if none is ready, as in 10s
    #[arg(long, value_parser = humantime::parse_duration, default_value = "0s")]
    wait: Duration,
    /// How long the items are leased, as in 5m [default: each item's own lease]
    #[arg(long, value_parser = humantime::parse_duration)]
    lease: Option<Duration>,
    /// The most bytes of payloads, metadata and headers to dequeue; the first item comes in any case
    /// [default: the server's]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "BYTES")]
    max_bytes: u32,
    /// The consumer's name, stored with each lease for operators
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
    consumer: String,
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
        if items.is_empty() {
            return match self.wait.is_zero() {
                true => Ok(()),
                false => Err(Failure::new("no item came in time").with(Status::Empty)),
            };
        }
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
        let demand = |topic: &String| Demand { topic: topic.clone(), max_items: self.max };
        loop {
            let call = DequeueCall {
                demands: self.topics.iter().map(demand).collect(),
                wait: end.saturating_duration_since(Instant::now()).min(POLL_TIMEOUT),
                lease: self.lease,
                consumer: self.consumer.clone(),
                max_bytes: self.max_bytes,
            };
            let items = client.dequeue(call).await?;
            if !items.is_empty() || Instant::now() >= end {
                return Ok(items);
            }
        }
    }

    fn print(&self, items: &[Dequeued]) -> io::Result<()> {
        match self.output {
            Output::Json => {
                let items: Vec<Value> = items.iter().map(to_json).collect();
                output::json(&json!({ "items": items }))
            }
            Output::Raw => self.print_raw(items),
            Output::Table if items.is_empty() => {
                // With a wait, the failure says so.
                if self.wait.is_zero() {
                    eprintln!("no item is ready");
                }
                Ok(())
            }
            Output::Table if self.topics.len() == 1 => {
                let rows: Vec<_> = items.iter().map(to_row).collect();
                output::table(["ITEM", "PRIORITY", "ATTEMPT", "RECEIPT", "PAYLOAD"], &rows)
            }
            Output::Table => {
                let with_topic = |item: &Dequeued| {
                    let [id, priority, attempt, receipt, payload] = to_row(item);
                    [id, item.topic.clone(), priority, attempt, receipt, payload]
                };
                let rows: Vec<_> = items.iter().map(with_topic).collect();
                output::table(["ITEM", "TOPIC", "PRIORITY", "ATTEMPT", "RECEIPT", "PAYLOAD"], &rows)
            }
        }
    }

    fn print_raw(&self, items: &[Dequeued]) -> io::Result<()> {
        let end: &[u8] = if self.max > 1 || self.topics.len() > 1 { b"\n" } else { b"" };
        let mut out = io::stdout().lock();
        for item in items {
            out.write_all(&item.payload)?;
            out.write_all(end)?;
            if !self.ack && !item.receipt.is_empty() {
                eprintln!("receipt {}", item.receipt);
            }
        }
        out.flush()
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
    json!({
        "item_id": item.item_id,
        "receipt": item.receipt,
        "topic": item.topic,
        "priority": item.priority,
        "attempt": item.attempt,
        "headers": item.headers,
        "enqueued_at": output::time(item.enqueued_at),
        "lease_expires_at": item.lease_expires_at.map(output::time),
        "expires_at": item.expires_at.map(output::time),
        "payload": output::base64(&item.payload),
        "metadata": output::base64(&item.metadata),
    })
}
