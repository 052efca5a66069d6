//! ListConsumers: who asks for items, and who has leases.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::Timestamp;

use crate::{client::Client, durations::time_from_proto, error::Error};

/// The consumers of a namespace that are known.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerList {
    /// By name.
    pub consumers: Vec<KnownConsumer>,
    /// There may be more.
    pub cut: bool,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
}

/// A consumer, by the name that it gives itself.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownConsumer {
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
    /// The consumers of the client's namespace.
    pub async fn consumers(&self) -> Result<ConsumerList, Error> {
        let request = v1::ListConsumersRequest { namespace: self.config.namespace.clone() };
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
        })
    }
}

fn report(it: v1::Consumer) -> KnownConsumer {
    KnownConsumer {
        name: it.name,
        topics: it.topics,
        topics_cut: it.topics_cut,
        leased: it.leased_count,
        oldest_lease_at: it.oldest_lease_at.map(time_from_proto),
        acks_per_second: it.acks_per_second,
        failures_per_second: it.failures_per_second,
        failure_ratio: it.failure_ratio,
        window: it.window.and_then(|window| window.try_into().ok()).unwrap_or_default(),
        last_seen_at: it.last_seen_at.map(time_from_proto),
        peer: it.peer,
        client: it.client,
    }
}
