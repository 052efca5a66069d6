//! `forebay dequeue`

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use clap::Args;
use forebay_client::{Client, Demand, DequeueCall, Error, ReceivedItem};
use forebay_types::is_prefix;
use serde_json::Value;
use tokio::time::Instant;

use super::{connection::Connection, settled};
use crate::{
    failure::{Failure, Status},
    output::{self, Cell, Look, Output, PayloadForm, Style, Table, print_json},
};

/// The longest long poll of one call.
const POLL_TIMEOUT: Duration = Duration::from_secs(20);

/// How items are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ItemOutput {
    /// Columns for people
    Table,
    /// The same with more columns
    Wide,
    /// One document, as JSON over HTTP has it. Payloads and metadata are base64
    Json,
    /// The same, an item a line
    Jsonl,
    /// Only the ids of the items, one a line
    Name,
    /// The payloads as they are; on a terminal control characters are escaped. If more than one item may
    /// come, each ends with a newline. Receipts go to stderr
    Raw,
}

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay dequeue --topic mail --max 10 --wait 5s --ack
  forebay dequeue --topic urgent --topic mail --lease 5m
  forebay dequeue --topic 'calls/*' --max 100 --ack
  forebay dequeue --topic mail --ack -o raw > letter.txt
  forebay dequeue --topic mail -o json")]
pub struct Dequeue {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// How items are printed
    #[arg(short, long, value_enum, default_value = "table", help_heading = "Output")]
    output: ItemOutput,
    /// How tables look.
    #[command(flatten)]
    look: Look,
    /// How tables show payloads; JSON has base64
    #[arg(long, value_enum, default_value = "text", value_name = "FORM", help_heading = "Output")]
    payload: PayloadForm,
    /// The topic to dequeue from, or 'calls/*' for all that begin with calls/; may be given several times
    #[arg(long = "topic", required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// The most items to dequeue of each --topic; together at most 1000
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
                false => Err(Failure::new("no item came in time").with(Status::NotThere)),
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
    async fn take(&self, client: &Client) -> Result<Vec<ReceivedItem>, Error> {
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

    /// Items of several topics may come.
    fn has_topics(&self) -> bool {
        self.topics.len() > 1 || self.topics.iter().any(|topic| is_prefix(topic))
    }

    fn print(&self, items: &[ReceivedItem]) -> Result<(), Failure> {
        // With a wait, the failure says so.
        if items.is_empty() && self.wait.is_zero() {
            self.look.note("no item is ready");
        }
        match self.output {
            ItemOutput::Json => print_json(Output::Json, "items", to_json(items)?, Vec::new()),
            ItemOutput::Jsonl => print_json(Output::Jsonl, "items", to_json(items)?, Vec::new()),
            ItemOutput::Name => {
                let mut out = io::stdout().lock();
                Ok(items.iter().try_for_each(|item| writeln!(out, "{}", item.item_id))?)
            }
            ItemOutput::Raw => Ok(self.print_raw(items)?),
            ItemOutput::Table | ItemOutput::Wide if items.is_empty() => Ok(()),
            ItemOutput::Table => Ok(self.print_table(items, false)?),
            ItemOutput::Wide => Ok(self.print_table(items, true)?),
        }
    }

    fn print_table(&self, items: &[ReceivedItem], wide: bool) -> io::Result<()> {
        let (style, topics) = (self.look.style(), wide || self.has_topics());
        let shown = |head: &str| match head {
            "TOPIC" => topics,
            "ENQUEUED" | "LEASE ENDS" | "EXPIRES" | "METADATA" | "HEADERS" => wide,
            "PAYLOAD" => self.payload != PayloadForm::None,
            _ => true,
        };
        let columns: Vec<_> = COLUMNS.iter().filter(|(head, _)| shown(head)).collect();
        let mut table = Table::new(columns.iter().map(|(head, _)| *head));
        for item in items {
            table.row(columns.iter().map(|(_, cell)| cell(item, &style, self.payload)));
        }
        table.print(&style)
    }

    fn print_raw(&self, items: &[ReceivedItem]) -> io::Result<()> {
        let end: &[u8] = if self.max > 1 || self.topics.len() > 1 { b"\n" } else { b"" };
        let mut out = io::stdout().lock();
        let for_eyes = out.is_terminal();
        for item in items {
            match for_eyes {
                true => writeln!(out, "{}", output::payload(&item.payload, PayloadForm::Text))?,
                false => {
                    out.write_all(&item.payload)?;
                    out.write_all(end)?;
                }
            }
            if !self.ack && !item.receipt.is_empty() {
                eprintln!("receipt {}", item.receipt);
            }
        }
        out.flush()
    }
}

/// A cell of an item.
type ItemCell = fn(&ReceivedItem, &Style, PayloadForm) -> Cell;

/// The columns of the table of items.
const COLUMNS: [(&str, ItemCell); 11] = [
    ("ITEM", |item, _, _| Cell::from(&item.item_id)),
    ("TOPIC", |item, _, _| Cell::from(&item.topic)),
    ("PRIORITY", |item, _, _| item.priority.into()),
    ("ATTEMPT", |item, _, _| item.attempt.into()),
    ("ENQUEUED", |item, style, _| style.time(item.enqueued_at).into()),
    ("LEASE ENDS", |item, style, _| style.optional_time(item.lease_expires_at).into()),
    ("EXPIRES", |item, style, _| style.optional_time(item.expires_at).into()),
    ("METADATA", |item, _, form| output::payload(&item.metadata, form).into()),
    ("HEADERS", |item, _, _| {
        let mut headers: Vec<_> =
            item.headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
        headers.sort_unstable();
        headers.join(", ").into()
    }),
    ("RECEIPT", |item, _, _| if item.receipt.is_empty() { "-".into() } else { Cell::from(&item.receipt) }),
    ("PAYLOAD", |item, _, form| output::payload(&item.payload, form).into()),
];

fn to_json(items: &[ReceivedItem]) -> anyhow::Result<Vec<Value>> {
    items.iter().map(|item| output::to_json("DequeuedItem", &output::delivery(item))).collect()
}
