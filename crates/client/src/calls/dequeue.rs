//! Dequeue. It is retried: items of a lost answer are delivered again when their leases end.

use std::{sync::Arc, time::Duration};

use forebay_proto::{NODE_HEADER, time, v1};
use tokio::time::Instant;
use tonic::Response;

use crate::{
    client::{Client, Grpc},
    dequeued::ReceivedItem,
    endpoints::Endpoint,
    error::Error,
    retry::Target,
    traces::DequeueSpan,
};

/// The longest wait of a long poll.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Call that dequeues items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DequeueCall {
    /// 1 to 100 topics, of which at most 16 stand for all that begin alike. None twice, also not by another
    /// one that stands for it; at most 1,000 items together.
    pub demands: Vec<Demand>,
    /// How long to wait if no item is ready, at most 20 s.
    pub wait: Duration,
    /// Replaces the items' own lease durations.
    pub lease: Option<Duration>,
    /// The consumer's name, for operators; may be empty.
    pub consumer: String,
    /// The most bytes of items in the answer, at most 15 MiB; 0: 3 MiB.
    pub max_bytes: u32,
}

/// One topic of a [`DequeueCall`], or all topics that begin alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The topic. One that ends in `*` stands for all topics that begin so: `calls/*`. Their items come best
    /// priority first; topics with items of one priority take turns.
    pub topic: String,
    /// The most items of this demand, 1 to 1,000.
    pub max_items: u32,
}

/// The items of one answer.
#[derive(Debug, Default)]
pub(crate) struct ReceivedItems {
    /// The items.
    pub(crate) items: Vec<ReceivedItem>,
    /// The name of the node that most of them came from. `None`: there are none, or the server does not say.
    pub(crate) source: Option<String>,
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

impl Client {
    /// Leases the most urgent items of the given topics; empty if none is ready. One node is asked, which
    /// hands out the items of all shards. One of an earlier release hands out those of its own shards alone:
    /// while there is one, a [`Consumer`](crate::Consumer) asks all nodes.
    pub async fn dequeue(&self, call: DequeueCall) -> Result<Vec<ReceivedItem>, Error> {
        let wait = call.wait.min(WAIT_MAX);
        let (receiving, request) = (DequeueSpan::begin(), self.dequeue_request(call));
        let answer = self.dequeue_anywhere(wait, &request).await;
        receiving.end(&request, &answer, || self.only_server());
        Ok(answer?.into_iter().map(ReceivedItem::from_proto).collect())
    }

    /// Makes the call, with as many attempts as it takes.
    async fn dequeue_anywhere(
        &self,
        wait: Duration,
        request: &v1::DequeueRequest,
    ) -> Result<Vec<v1::DequeuedItem>, Error> {
        let mut attempts = self.attempts(wait);
        loop {
            let target = attempts.target()?;
            match self.attempt_dequeue(&target, wait, request.clone()).await {
                Ok((answer, _)) => return Ok(answer.items),
                Err(error) if attempts.wait_for_retry(&[&error]).await => {}
                Err(error) => return Err(attempts.final_error(error)),
            }
        }
    }

    /// The same from this endpoint, in one attempt.
    pub(crate) async fn dequeue_from(
        &self,
        endpoint: Arc<Endpoint>,
        call: DequeueCall,
    ) -> Result<ReceivedItems, Error> {
        let wait = call.wait.min(WAIT_MAX);
        let target = Target { endpoint, until: Instant::now() + self.config.call_timeout + wait };
        let (receiving, request) = (DequeueSpan::begin(), self.dequeue_request(call));
        let (answer, source) = match self.attempt_dequeue(&target, wait, request.clone()).await {
            Ok((answer, source)) => (Ok(answer.items), source),
            Err(error) => (Err(error), None),
        };
        receiving.end(&request, &answer, || target.endpoint.checked_address());
        let items = answer?.into_iter().map(ReceivedItem::from_proto).collect();
        Ok(ReceivedItems { items, source })
    }

    fn dequeue_request(&self, call: DequeueCall) -> v1::DequeueRequest {
        let wait = call.wait.min(WAIT_MAX);
        v1::DequeueRequest {
            namespace: self.config.namespace.clone(),
            demands: call.demands.into_iter().map(demand).collect(),
            wait: (!wait.is_zero()).then(|| time::to_duration(wait)),
            lease_duration: call.lease.map(time::to_duration),
            consumer: call.consumer,
            max_bytes: call.max_bytes,
        }
    }

    async fn attempt_dequeue(
        &self,
        target: &Target,
        wait: Duration,
        request: v1::DequeueRequest,
    ) -> Result<(v1::DequeueResponse, Option<String>), Error> {
        let call = |mut grpc: Grpc, request| async move { grpc.dequeue(request).await.map(with_source) };
        let (answer, source) = self.attempt(target, wait, request, call).await?;
        let receipts = answer.items.iter().map(|item| item.receipt.as_str());
        self.endpoints.origins.remember(receipts, target.endpoint.id());
        Ok((answer, source))
    }
}

/// An answer, and the node that most of its items came from.
fn with_source(answer: Response<v1::DequeueResponse>) -> Response<(v1::DequeueResponse, Option<String>)> {
    let named = answer.metadata().get(NODE_HEADER).and_then(|value| value.to_str().ok());
    let source = named.map(str::to_owned);
    answer.map(|answer| (answer, source))
}

fn demand(demand: Demand) -> v1::TopicDemand {
    let selector = match demand.topic.strip_suffix('*') {
        Some(prefix) => v1::topic_demand::Selector::TopicPrefix(prefix.to_owned()),
        None => v1::topic_demand::Selector::Topic(demand.topic),
    };
    v1::TopicDemand { selector: Some(selector), max_items: demand.max_items }
}
