//! `forebay enqueue`

use std::{io::Read as _, path::PathBuf, time::Duration};

use bytes::Bytes;
use clap::Args;
use forebay_client::{Enqueued, Error, NewItem};
use serde_json::{Value, json};

use super::connection::Connection;
use crate::{
    failure::Failure,
    output::{self, Output},
};

/// Items of one call.
const CALL_ITEMS_MAX: usize = 1_000;
/// Payload bytes of one call, below the limit of 4 MiB for a whole request.
const CALL_BYTES_MAX: usize = 3 << 20;

/// The flags.
#[derive(Args)]
pub struct Enqueue {
    /// Server, namespace and output format.
    #[command(flatten)]
    connection: Connection,
    /// The topic to enqueue to
    #[arg(long)]
    topic: String,
    /// Smaller numbers are delivered first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Deliver the item only after this time, as in 5s or 2h
    #[arg(long, value_parser = humantime::parse_duration)]
    delay: Option<Duration>,
    /// Remove the item after this time, as in 1h [default: never]
    #[arg(long, value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,
    /// Do not store the item if one with this key was enqueued before, within the dedupe window
    #[arg(long, value_name = "KEY")]
    dedupe_key: Option<String>,
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
        let item = NewItem {
            priority: self.priority,
            ttl: self.ttl,
            dedupe_key: self.dedupe_key.clone(),
            ..NewItem::new(&self.topic, self.payload()?)
        };
        let item = match self.delay {
            Some(delay) => item.delay(delay),
            None => item,
        };
        let client = self.connection.client().await?;
        let batch = CALL_ITEMS_MAX.min(CALL_BYTES_MAX / item.payload.len().max(1)).max(1);
        let (mut results, mut left) = (Vec::new(), self.count as usize);
        let mut failed = None;
        while left > 0 && failed.is_none() {
            let size = left.min(batch);
            match client.enqueue(vec![item.clone(); size]).await {
                Ok(answers) => results.extend(answers),
                Err(error) => failed = Some(error),
            }
            left -= size;
        }
        // Items that were stored before a call failed are printed too.
        self.print(&results)?;
        match failed.or_else(|| results.into_iter().find_map(Result::err)) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn payload(&self) -> Result<Bytes, Failure> {
        if let Some(text) = &self.payload {
            return Ok(text.clone().into());
        }
        let mut bytes = Vec::new();
        match &self.file {
            Some(path) => {
                let unreadable = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
                bytes = std::fs::read(path).map_err(unreadable)?;
            }
            None => drop(std::io::stdin().lock().read_to_end(&mut bytes)?),
        }
        Ok(bytes.into())
    }

    fn print(&self, results: &[Result<Enqueued, Error>]) -> std::io::Result<()> {
        if results.is_empty() {
            return Ok(());
        }
        match self.connection.output {
            Output::Json => {
                let results: Vec<Value> = results.iter().map(to_json).collect();
                output::json(&json!({ "results": results }))
            }
            Output::Table => {
                let rows: Vec<_> = results.iter().map(to_row).collect();
                output::table(["ITEM", "OUTCOME"], &rows)
            }
        }
    }
}

fn to_json(result: &Result<Enqueued, Error>) -> Value {
    match result {
        Ok(stored) => json!({ "item_id": stored.item_id, "duplicate": stored.duplicate }),
        Err(error) => json!({ "error": output::refusal(error) }),
    }
}

fn to_row(result: &Result<Enqueued, Error>) -> [String; 2] {
    match result {
        Ok(stored) => {
            let outcome = if stored.duplicate { "duplicate" } else { "stored" };
            [stored.item_id.clone(), outcome.to_owned()]
        }
        Err(error) => ["-".to_owned(), output::cell(error.to_string().as_bytes())],
    }
}
