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
const BATCH_ITEMS: usize = 1_000;
/// Bytes of one call, with room for what goes beside the payloads.
const BATCH_BYTES: usize = 3 << 20;

/// The flags.
#[derive(Args)]
pub struct Enqueue {
    #[command(flatten)]
    connection: Connection,
    /// Where the items wait
    #[arg(long)]
    topic: String,
    /// The smaller number goes first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Not delivered before this span has passed, as in 5s or 2h
    #[arg(long, value_parser = humantime::parse_duration)]
    delay: Option<Duration>,
    /// Not delivered after this span has passed
    #[arg(long, value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,
    /// A second item with this key inside the window is not stored
    #[arg(long, value_name = "KEY")]
    dedupe_key: Option<String>,
    /// Store so many copies
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Read the payload from this file
    #[arg(long, conflicts_with = "payload")]
    file: Option<PathBuf>,
    /// The payload; without it and without --file it is read from stdin
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
        let client = self.connection.client()?;
        let batch = BATCH_ITEMS.min(BATCH_BYTES / item.payload.len().max(1)).max(1);
        let (mut results, mut left) = (Vec::new(), self.count as usize);
        let mut broken = None;
        while left > 0 && broken.is_none() {
            let size = left.min(batch);
            match client.enqueue(vec![item.clone(); size]).await {
                Ok(answers) => results.extend(answers),
                Err(error) => broken = Some(error),
            }
            left -= size;
        }
        // What was stored before a call failed is told all the same.
        self.print(&results)?;
        match broken.or_else(|| results.into_iter().find_map(Result::err)) {
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
                let unreadable = |error| Failure::new(format!("{} can't be read: {error}", path.display()));
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
