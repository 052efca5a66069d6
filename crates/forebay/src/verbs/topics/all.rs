//! All topics of a node, from its status page: gRPC lists the active ones only.

use serde::Deserialize;
use serde_json::json;

use super::flags::Topics;
use crate::{
    failure::Failure,
    http_get,
    output::{self, Output},
};

/// The page.
const PATH: &str = "/status.json";
/// Where a node's HTTP port is unless configured otherwise.
const HTTP_PORT: u16 = 7421;

/// What is read of the page.
#[derive(Deserialize)]
struct Page {
    /// The queue.
    engine: Engine,
}

/// The queue, as the page shows it.
#[derive(Deserialize)]
struct Engine {
    /// Some of the node's topics, of all namespaces.
    topics: Vec<Topic>,
    /// How many there are.
    topic_count: usize,
}

/// A topic, as the page shows it.
#[derive(Deserialize)]
struct Topic {
    /// Its namespace.
    namespace: String,
    /// Its name.
    topic: String,
    /// Items that are ready.
    ready: u64,
    /// Items that are leased.
    leased: u64,
    /// Items that are not due yet.
    scheduled: u64,
    /// Dead letters.
    dead: u64,
}

/// Lists the topics by name.
pub async fn list(flags: &Topics) -> Result<(), Failure> {
    let address = match &flags.http {
        Some(address) => address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/').to_owned(),
        None => format!("{}:{HTTP_PORT}", flags.connection.host()?),
    };
    let page = http_get::get(&address, PATH).await?;
    let page: Page = serde_json::from_slice(&page)
        .map_err(|error| Failure::new(format!("{address}{PATH} is not a node's status: {error}")))?;
    let Engine { mut topics, topic_count } = page.engine;
    let incomplete = topics.len() < topic_count;
    if incomplete {
        eprintln!("the node shows {} of its {topic_count} topics; some may be missing here", topics.len());
    }
    let namespace = flags.connection.namespace.as_str();
    topics.retain(|topic| topic.namespace == namespace && topic.topic.starts_with(&flags.prefix));
    topics.sort_by(|a, b| a.topic.cmp(&b.topic));
    topics.truncate(flags.limit as usize);
    match flags.format.output {
        Output::Json => {
            let topics = topics.iter().map(|topic| {
                json!({
                    "topic": topic.topic,
                    "ready_count": topic.ready,
                    "leased_count": topic.leased,
                    "scheduled_count": topic.scheduled,
                    "dead_count": topic.dead,
                })
            });
            output::json(&json!({ "topics": topics.collect::<Vec<_>>(), "incomplete": incomplete }))?;
        }
        Output::Table => {
            let row = |topic: Topic| {
                let Topic { ready, leased, scheduled, dead, .. } = topic;
                let [ready, leased, scheduled, dead] =
                    [ready, leased, scheduled, dead].map(|n| n.to_string());
                [topic.topic, ready, leased, scheduled, dead]
            };
            let rows: Vec<_> = topics.into_iter().map(row).collect();
            output::table(["TOPIC", "READY", "LEASED", "SCHEDULED", "DEAD"], &rows)?;
        }
    }
    Ok(())
}
