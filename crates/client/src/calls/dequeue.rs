//! Dequeue: what a lost answer had leased comes back when the lease ends, so it may be repeated.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use forebay_proto::v1;
use forebay_types::{DeliveryPolicy, Timestamp};

use crate::{Client, Error, spans};

/// What to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DequeueCall {
    /// 1 to 100 topics, none twice, at most 1,000 items together.
    pub demands: Vec<Demand>,
    /// How long to wait if nothing is there; at most 20 s count.
    pub wait: Duration,
    /// Overrides the items' own lease duration.
    pub lease: Option<Duration>,
    /// Who asks, for operators; may be empty.
    pub consumer: String,
    /// Bytes of items in the answer; 0: 3 MiB. At most 15 MiB.
    pub max_bytes: u32,
}

/// One topic of a [`DequeueCall`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The topic.
    pub topic: String,
    /// At most so many items; 1 to 1,000.
    pub max_items: u32,
}

impl DequeueCall {
    /// At most `max_items` of one topic, without waiting.
    pub fn topic(topic: impl Into<String>, max_items: u32) -> Self {
        Self {
            demands: vec![Demand { topic: topic.into(), max_items }],
            wait: Duration::ZERO,
            lease: None,
            consumer: String::new(),
            max_bytes: 0,
        }
    }

    /// The same with a long poll.
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// The same with another lease duration.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }
}

/// An item that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dequeued {
    /// The item.
    pub item_id: String,
    /// Names this delivery; empty for an at-most-once item, which needs no ack.
    pub receipt: String,
    /// Its topic.
    pub topic: String,
    /// Its priority.
    pub priority: i32,
    /// What the producer gave.
    pub payload: Bytes,
    /// What the producer or a nack gave.
    pub metadata: Bytes,
    /// Short strings beside the payload.
    pub headers: HashMap<String, String>,
    /// Numbers the deliveries from 1.
    pub attempt: u32,
    /// When it arrived.
    pub enqueued_at: Timestamp,
    /// When the lease ends; `None` for an at-most-once item.
    pub lease_expires_at: Option<Timestamp>,
    /// When it expires, if ever.
    pub expires_at: Option<Timestamp>,
    /// Whether it needs an ack.
    pub policy: DeliveryPolicy,
}

impl Client {
    /// Leases the most urgent items of the topics asked for; empty if there was nothing.
    pub async fn dequeue(&self, call: DequeueCall) -> Result<Vec<Dequeued>, Error> {
        let wait = call.wait.min(Duration::from_secs(20));
        let request = v1::DequeueRequest {
            namespace: self.config.namespace.clone(),
            demands: call.demands.into_iter().map(demand).collect(),
            wait: (!wait.is_zero()).then(|| spans::to_proto(wait)),
            lease_duration: call.lease.map(spans::to_proto),
            consumer: call.consumer,
            max_bytes: call.max_bytes,
        };
        let mut attempts = self.attempts(wait);
        loop {
            let answer = self
                .attempt(wait, attempts.until(), request.clone(), |mut grpc, request| async move {
                    grpc.dequeue(request).await
                })
                .await;
            match answer {
                Ok(answer) => return Ok(answer.items.into_iter().map(dequeued).collect()),
                Err(error) if attempts.again(&error, &self.dice).await => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn demand(demand: Demand) -> v1::TopicDemand {
    v1::TopicDemand {
        selector: Some(v1::topic_demand::Selector::Topic(demand.topic)),
        max_items: demand.max_items,
    }
}

fn dequeued(item: v1::DequeuedItem) -> Dequeued {
    Dequeued {
        policy: match item.delivery_policy() {
            v1::DeliveryPolicy::AtMostOnce => DeliveryPolicy::AtMostOnce,
            v1::DeliveryPolicy::AtLeastOnce | v1::DeliveryPolicy::Unspecified => DeliveryPolicy::AtLeastOnce,
        },
        item_id: item.item_id,
        receipt: item.receipt,
        topic: item.topic,
        priority: item.priority,
        payload: item.payload,
        metadata: item.metadata,
        headers: item.headers,
        attempt: item.attempt,
        enqueued_at: item.enqueued_at.map(spans::time_from_proto).unwrap_or_default(),
        lease_expires_at: item.lease_expires_at.map(spans::time_from_proto),
        expires_at: item.expires_at.map(spans::time_from_proto),
    }
}
