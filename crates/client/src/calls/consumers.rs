//! ListConsumers: who asks for items, and who has leases.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::Timestamp;

use crate::{
    client::Client,
    durations::{from_proto, time_from_proto},
    error::Error,
};

/// A page of the consumers that are known.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerList {
    /// By namespace and name.
    pub consumers: Vec<KnownConsumer>,
    /// Some of them may be missing.
    pub cut: bool,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
    /// The token of the next page. `None`: this is the last one.
    pub next: Option<String>,
}

/// A consumer, by the name that it gives itself.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownConsumer {
    /// Its tenant.
    pub namespace: String,
    /// The name. Empty: those that give none.
    pub name: String,
    /// Topics that it asked for lately or has leases of, at most 5.
    pub topics: Vec<String>,
    /// There are more topics.
    pub topics_cut: bool,
    /// Items that it has leased.
    pub leased: u64,
    /// When the oldest of these deliveries began.
    pub oldest_lease_at: Option<Timestamp>,
    /// Its deliveries acked a second.
    pub acks_per_second: f64,
    /// Its deliveries a second that were nacked, or whose lease ran out.
    pub failures_per_second: f64,
    /// The failed ones of its deliveries that ended, 0 to 1.
    pub failure_ratio: f64,
    /// Over how long that is counted.
    pub window: Duration,
    /// When it asked for items last, if that is known.
    pub last_seen_at: Option<Timestamp>,
    /// From where it asked last: host and port.
    pub peer: String,
    /// The program that it said it is.
    pub client: String,
}

impl Client {
    /// A page of the consumers of the client's namespace, or of all namespaces where that is `-`. An empty
    /// token asks for the first one.
    pub async fn consumers(&self, page_size: u32, page_token: String) -> Result<ConsumerList, Error> {
        let namespace = self.config.namespace.clone();
        let request = v1::ListConsumersRequest { namespace, page_size, page_token };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.list_consumers(request).await }
            })
            .await?;
        Ok(ConsumerList {
            consumers: answer.consumers.into_iter().map(report).collect(),
            cut: answer.consumers_cut,
            incomplete_shards: answer.incomplete_shards,
            next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
        })
    }
}

fn report(it: v1::Consumer) -> KnownConsumer {
    KnownConsumer {
        namespace: it.namespace,
        name: it.name,
        topics: it.topics,
        topics_cut: it.topics_cut,
        leased: it.leased_count,
        oldest_lease_at: it.oldest_lease_at.map(time_from_proto),
        acks_per_second: it.acks_per_second,
        failures_per_second: it.failures_per_second,
        failure_ratio: it.failure_ratio,
        window: it.window.map(from_proto).unwrap_or_default(),
        last_seen_at: it.last_seen_at.map(time_from_proto),
        peer: it.peer,
        client: it.client,
    }
}
