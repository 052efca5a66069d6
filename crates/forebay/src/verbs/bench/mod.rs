//! `forebay bench`: a short load on a queue that runs, and a check that it loses nothing.

mod ledger;
mod load;
mod nodes;
mod report;

use std::{sync::Arc, time::Duration};

use clap::Args;
use forebay_client::{
    Client, Code, Error,
    v1::{Operation, OperationKind, StartOperationRequest},
};
use forebay_edge::random::random;
use load::Load;
use nodes::Nodes;
use tokio::time::timeout;

use super::{connection::Connection, follow};
use crate::{
    failure::Failure,
    output::{Format, print_one},
};

/// How long the purge at the end may take.
const PURGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay bench
  forebay bench --producers 8 --consumers 8 --size 1024 --batch 100 --duration 30s
  forebay bench --namespace bench -o json

Stores items in a topic of its own, takes and acks them, and purges the topic. It fails if an item was lost,
or was delivered after its ack. The load is a real one: others wait for what it takes.")]
pub struct Bench {
    /// Which servers are loaded.
    #[command(flatten)]
    connection: Connection,
    /// How the result is printed.
    #[command(flatten)]
    format: Format,
    /// Calls that enqueue at a time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    producers: u32,
    /// Calls that dequeue at a time; each node has one at least
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    consumers: u32,
    /// Items of a call
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// Bytes of a payload
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(16..=262_144))]
    size: u32,
    /// How long items are stored; those that are left are awaited after that
    #[arg(long, value_parser = humantime::parse_duration, default_value = "10s", value_name = "TIME")]
    duration: Duration,
}

impl Bench {
    /// Loads the servers, and says what came of it.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let nodes = Nodes::learn(&self.connection.servers).await?;
        // An id that nobody else has: a topic with foreign items would lose them.
        let topic = format!("forebay-bench/{:016x}", random().map_err(Failure::from_display)?);
        self.format.look.note(&format!("storing items in topic {topic} for {:?}", self.duration));
        let load = Arc::new(Load::new(topic.clone(), self.size as usize, self.batch));
        let result = load.run(nodes, self.producers, self.consumers, self.duration).await;
        let purged = timeout(PURGE_TIMEOUT, purge(&client, &topic)).await;
        let result = result?;
        let look = &self.format.look;
        match purged {
            Ok(Ok(operation)) => {
                if let Err(failure) = follow::judge(&operation) {
                    look.note(&format!("topic {topic} could not be purged: {}", failure.text()));
                }
            }
            // Nothing is left there, so that it was not allowed does not matter.
            Ok(Err(error)) if error.code() == Code::PermissionDenied && result.is_clean() => {}
            Ok(Err(error)) => look.note(&format!("topic {topic} could not be purged: {error}")),
            Err(_) => look.note(&format!("the purge of topic {topic} goes on")),
        }
        print_one(&result, &self.format)?;
        result.judge()
    }
}

/// Removes what is left. Returns the operation as it ended.
async fn purge(client: &Client, topic: &str) -> Result<Operation, Error> {
    let query = StartOperationRequest {
        leased: true,
        reason: "the end of forebay bench".to_owned(),
        ..follow::of_topic(OperationKind::Purge, topic)
    };
    let mut operation = follow::start(client, query).await?.operation.unwrap_or_default();
    while !follow::has_ended(&operation) {
        operation = follow::look(client, &operation.id, Some(operation.version)).await?;
    }
    Ok(operation)
}
