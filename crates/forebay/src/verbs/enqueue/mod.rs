//! `forebay enqueue`

mod batches;
mod report;
mod stdin;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use clap::Args;
use forebay_client::{DeliveryPolicy, NewItem, Schedule, Timestamp};

use super::connection::Connection;
use crate::{failure::Failure, output::Format, parse};
use batches::{Batches, CallLimit};
use report::Report;

/// Bytes of an item's other fields, with room to spare.
const ITEM_BYTES: usize = 128;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay enqueue --topic mail --priority 5 'hello'
  forebay enqueue --topic mail --delay 10m --ttl 1h --header kind=reminder --file letter.txt
  forebay enqueue --topic mail --dedupe-key order-17 'thanks'
  forebay enqueue --topic mail --lines --request-id import-7 --file letters.txt
  printf 'one\\ntwo\\n' | forebay enqueue --topic mail --lines")]
pub struct Enqueue {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The topic to enqueue to
    #[arg(long)]
    topic: String,
    /// Smaller numbers are delivered first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Deliver the item only after this time, as in 5s or 2h
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with = "deliver_after")]
    delay: Option<Duration>,
    /// Deliver the item only after this point in time, as in 2030-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    deliver_after: Option<Timestamp>,
    /// Remove the item after this time, as in 1h [default: never]
    #[arg(long, value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,
    /// How long a consumer may work on the item, as in 5m [default: 30s]
    #[arg(long, value_parser = humantime::parse_duration)]
    lease: Option<Duration>,
    /// Failed deliveries after which the item becomes a dead letter [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts: Option<u32>,
    /// Remove the item before it is delivered, so that it is delivered once or never and needs no ack
    #[arg(long)]
    at_most_once: bool,
    /// A header of the item; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse::pair)]
    headers: Vec<(String, String)>,
    /// More content beside the payload; a nack may replace it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    metadata: String,
    /// Do not store the item if one of the topic with this key was enqueued before, within the dedupe window
    #[arg(long, value_name = "KEY", conflicts_with_all = ["request_id", "shard", "lines"])]
    dedupe_key: Option<String>,
    /// Store nothing if these items were enqueued before with this id, within the dedupe window; prints the
    /// first run's results
    #[arg(long, value_name = "ID", conflicts_with = "shard")]
    request_id: Option<String>,
    /// Store the item on exactly this shard
    #[arg(long, value_name = "N")]
    shard: Option<u32>,
    /// Enqueue each line of the file or of stdin as an item of its own
    #[arg(long, conflicts_with_all = ["payload", "count"])]
    lines: bool,
    /// How many copies to enqueue
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Read the payload from this file
    #[arg(long, conflicts_with = "payload")]
    file: Option<PathBuf>,
    /// The payload; without it and without --file the payload is read from stdin
    payload: Option<String>,
}

impl Enqueue {
    /// Stores the items and prints their ids.
    pub async fn run(self) -> Result<(), Failure> {
        let item = self.item()?;
        let client = self.connection.client().await?;
        let mut batches = self.batches(&item)?;
        let mut report = Report::new(self.format.output, self.lines);
        for call in 1_u64.. {
            let payloads = match batches.next().await {
                Ok(Some(payloads)) => payloads,
                Ok(None) => break,
                Err(failure) => {
                    report.stop(failure);
                    break;
                }
            };
            let count = payloads.len();
            let items = payloads.into_iter().map(|payload| NewItem { payload, ..item.clone() }).collect();
            let answers = match self.request_id(call) {
                Some(id) => client.enqueue_once(id, items).await,
                None => client.enqueue(items).await,
            };
            match answers {
                Ok(answers) => report.add(&answers)?,
                Err(error) => {
                    report.fail_call(count, &error);
                    break;
                }
            }
        }
        report.finish()
    }

    /// An item without its payload.
    fn item(&self) -> Result<NewItem, Failure> {
        let mut headers = BTreeMap::new();
        for (name, value) in &self.headers {
            if headers.insert(name.clone(), value.clone()).is_some() {
                return Err(Failure::usage(format!("--header: {name:?} is given twice")));
            }
        }
        let at = self.deliver_after.map_or(Schedule::Now, Schedule::At);
        Ok(NewItem {
            priority: self.priority,
            metadata: self.metadata.clone().into(),
            headers,
            schedule: self.delay.map_or(at, Schedule::After),
            lease: self.lease,
            ttl: self.ttl,
            policy: if self.at_most_once { DeliveryPolicy::AtMostOnce } else { DeliveryPolicy::AtLeastOnce },
            max_attempts: self.max_attempts.unwrap_or_default(),
            dedupe_key: self.dedupe_key.clone(),
            shard: self.shard,
            ..NewItem::new(&self.topic, "")
        })
    }

    fn batches(&self, item: &NewItem) -> Result<Batches, Failure> {
        let headers = item.headers.iter().map(|(name, value)| name.len() + value.len() + 8);
        let key = item.dedupe_key.as_ref().map_or(0, String::len);
        let bytes = ITEM_BYTES + item.topic.len() + item.metadata.len() + key + headers.sum::<usize>();
        let limit = CallLimit::new(bytes);
        if self.lines {
            return Batches::lines(self.file.clone(), limit, self.request_id.is_some());
        }
        let payload = match &self.payload {
            Some(text) => text.clone().into_bytes(),
            None => stdin::read(self.file.as_ref())?,
        };
        Ok(Batches::Copies { payload: payload.into(), left: self.count as usize, limit })
    }

    /// The request id of one of this run's calls. The first has the one that was given.
    fn request_id(&self, call: u64) -> Option<String> {
        let id = self.request_id.as_ref()?;
        Some(if call == 1 { id.clone() } else { format!("{id}.{call}") })
    }
}
