//! Servers in this process that answer by script and record their calls.

mod network;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use forebay_proto::{
    NEXT_SHARD_HEADER, NODE_HEADER, Status as Refused,
    v1::{self, queue_service_server::QueueService},
};
use prost::Message as _;
use tokio::sync::watch;
use tonic::{Code, Request, Response, Status, metadata::MetadataMap};
use tonic_types::{ErrorDetails, StatusExt as _};

pub(crate) use network::{Network, config, node};

/// The scripts of the six calls, and the nodes of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    /// `Enqueue`.
    pub(crate) enqueue: Script<v1::EnqueueRequest, v1::EnqueueResponse>,
    /// `Dequeue`.
    pub(crate) dequeue: Script<v1::DequeueRequest, v1::DequeueResponse>,
    /// `Ack`.
    pub(crate) ack: Script<v1::AckRequest, v1::AckResponse>,
    /// `Nack`.
    pub(crate) nack: Script<v1::NackRequest, v1::NackResponse>,
    /// `ExtendLease`.
    pub(crate) extend: Script<v1::ExtendLeaseRequest, v1::ExtendLeaseResponse>,
    /// `GetActiveTopics`.
    pub(crate) topics: Script<v1::GetActiveTopicsRequest, v1::GetActiveTopicsResponse>,
    /// `ListNodes`. Without an answer, the usual one is `cluster`.
    pub(crate) nodes: Script<v1::ListNodesRequest, v1::ListNodesResponse>,
    /// The shard that answers to enqueues propose.
    pub(crate) next_shard: Mutex<Option<u32>>,
    /// The node that answers with items name.
    pub(crate) source: Mutex<Option<&'static str>>,
    /// Items for dequeues without a scripted answer.
    pub(crate) stock: Mutex<Option<Stock>>,
    /// Nodes that `ListNodes` answers. `None`: there is no such call.
    pub(crate) cluster: Mutex<Option<Vec<v1::Node>>>,
}

/// Items that are handed out as far as they are asked for.
#[derive(Debug)]
pub(crate) struct Stock {
    /// The numbers of the items that are left.
    pub(crate) numbers: std::ops::Range<usize>,
    /// Is told how many were handed out.
    pub(crate) held: HeldItems,
}

/// Counts items that are handed out and not handled yet, at all servers together.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldItems(Arc<Mutex<(usize, usize)>>);

impl HeldItems {
    /// Counts this many more as handed out.
    fn add(&self, items: usize) {
        let mut held = self.0.lock().unwrap();
        held.0 += items;
        held.1 = held.1.max(held.0);
    }

    /// One was handled.
    pub(crate) fn handled(&self) {
        self.0.lock().unwrap().0 -= 1;
    }

    /// The most there ever were.
    pub(crate) fn most(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl Stock {
    fn take(&mut self, demands: &[v1::TopicDemand]) -> v1::DequeueResponse {
        let asked: u32 = demands.iter().map(|demand| demand.max_items).sum();
        let items: Vec<_> = self.numbers.by_ref().take(asked as usize).map(item).collect();
        self.held.add(items.len());
        v1::DequeueResponse { items }
    }
}

/// The scripted answers of one call, and the requests so far.
#[derive(Debug)]
pub(crate) struct Script<Q, A> {
    /// The requests so far.
    calls: Mutex<Vec<Q>>,
    /// Metadata that they carried beside their messages.
    metadata: Mutex<Vec<MetadataMap>>,
    /// The answers to the next calls.
    answers: Mutex<VecDeque<Result<A, Status>>>,
    /// Calls so far.
    seen: watch::Sender<usize>,
    /// While false, calls are recorded but not answered.
    open: watch::Sender<bool>,
}

impl<Q, A> Default for Script<Q, A> {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            metadata: Mutex::default(),
            answers: Mutex::default(),
            seen: watch::Sender::new(0),
            open: watch::Sender::new(true),
        }
    }
}

impl<Q: Clone, A> Script<Q, A> {
    /// The next call without an answer yet gets this one.
    pub(crate) fn answer(&self, answer: A) {
        self.answers.lock().unwrap().push_back(Ok(answer));
    }

    /// The next calls fail, without details unless there is a reason.
    pub(crate) fn fail(&self, code: Code, reason: Option<&str>, times: usize) {
        for _ in 0..times {
            self.answers.lock().unwrap().push_back(Err(match reason {
                Some(reason) => {
                    let details = ErrorDetails::with_error_info(reason, "forebay", [])
                        .set_retry_info(Some(std::time::Duration::from_millis(1)))
                        .clone();
                    Status::with_error_details(code, "scripted", details)
                }
                None => Status::new(code, "scripted"),
            }));
        }
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<Q> {
        self.calls.lock().unwrap().clone()
    }

    /// Metadata that the calls so far carried beside their messages.
    pub(crate) fn metadata(&self) -> Vec<MetadataMap> {
        self.metadata.lock().unwrap().clone()
    }

    /// Waits until `calls` calls have arrived.
    pub(crate) async fn seen(&self, calls: usize) {
        self.seen.subscribe().wait_for(|seen| *seen >= calls).await.unwrap();
    }

    /// Holds calls back, or lets them continue.
    pub(crate) fn hold(&self, hold: bool) {
        self.open.send_replace(!hold);
    }

    async fn take(&self, call: Request<Q>) -> Option<Result<A, Status>> {
        self.metadata.lock().unwrap().push(call.metadata().clone());
        self.calls.lock().unwrap().push(call.into_inner());
        self.seen.send_modify(|seen| *seen += 1);
        self.open.subscribe().wait_for(|open| *open).await.unwrap();
        self.answers.lock().unwrap().pop_front()
    }
}

/// A member that was stored.
pub(crate) fn stored(id: &str) -> v1::EnqueueResult {
    v1::EnqueueResult { item_id: id.to_owned(), ..Default::default() }
}

/// A delivery.
pub(crate) fn item(number: usize) -> v1::DequeuedItem {
    v1::DequeuedItem {
        item_id: format!("1-{number}"),
        receipt: format!("receipt-{number}"),
        topic: "a".to_owned(),
        attempt: 1,
        ..Default::default()
    }
}

/// A member's error with a reason.
pub(crate) fn refusal(code: Code, reason: &str, retry_after_ms: Option<u64>) -> Refused {
    refusal_with(code, reason, |details| {
        if let Some(span) = retry_after_ms {
            details.set_retry_info(Some(std::time::Duration::from_millis(span)));
        }
    })
}

/// A member's error with a reason and more.
pub(crate) fn refusal_with(code: Code, reason: &str, more: impl FnOnce(&mut ErrorDetails)) -> Refused {
    let mut details = ErrorDetails::with_error_info(reason, "forebay", []);
    more(&mut details);
    let status = Status::with_error_details(code, "scripted", details);
    Refused::decode(status.details()).unwrap()
}

/// The delivery is over.
pub(crate) fn lease_lost(fate: &str) -> Refused {
    refusal_with(Code::FailedPrecondition, "LEASE_LOST", |details| {
        details.set_error_info("LEASE_LOST", "forebay", [("item".to_owned(), fate.to_owned())]);
    })
}

type Answer<A> = Result<Response<A>, Status>;

#[tonic::async_trait]
impl QueueService for Fake {
    async fn enqueue(&self, request: Request<v1::EnqueueRequest>) -> Answer<v1::EnqueueResponse> {
        let results =
            request.get_ref().items.iter().map(|item| stored(&String::from_utf8_lossy(&item.payload)));
        let usual = v1::EnqueueResponse { results: results.collect() };
        let mut response = Response::new(self.enqueue.take(request).await.unwrap_or(Ok(usual))?);
        if let Some(shard) = *self.next_shard.lock().unwrap() {
            response.metadata_mut().insert(NEXT_SHARD_HEADER, shard.into());
            if let Some(node) = *self.source.lock().unwrap() {
                response.metadata_mut().insert(NODE_HEADER, node.parse().unwrap());
            }
        }
        Ok(response)
    }

    async fn dequeue(&self, request: Request<v1::DequeueRequest>) -> Answer<v1::DequeueResponse> {
        let asked = request.get_ref();
        let (wait, demands) = (asked.wait.unwrap_or_default(), asked.demands.clone());
        let scripted = self.dequeue.take(request).await;
        let stock = || self.stock.lock().unwrap().as_mut().map(|stock| Ok(stock.take(&demands)));
        let in_stock = |answer: &Result<v1::DequeueResponse, _>| {
            answer.as_ref().is_ok_and(|answer| !answer.items.is_empty())
        };
        match scripted.or_else(|| stock().filter(in_stock)) {
            Some(answer) => {
                let mut response = Response::new(answer?);
                if let Some(node) = *self.source.lock().unwrap() {
                    response.metadata_mut().insert(NODE_HEADER, node.parse().unwrap());
                }
                Ok(response)
            }
            None => {
                tokio::time::sleep(wait.try_into().unwrap()).await;
                Ok(Response::new(v1::DequeueResponse::default()))
            }
        }
    }

    async fn ack(&self, request: Request<v1::AckRequest>) -> Answer<v1::AckResponse> {
        let results = vec![v1::SettleResult::default(); request.get_ref().acks.len()];
        self.ack.take(request).await.unwrap_or(Ok(v1::AckResponse { results })).map(Response::new)
    }

    async fn nack(&self, request: Request<v1::NackRequest>) -> Answer<v1::NackResponse> {
        let results = vec![v1::SettleResult::default(); request.get_ref().nacks.len()];
        self.nack.take(request).await.unwrap_or(Ok(v1::NackResponse { results })).map(Response::new)
    }

    async fn extend_lease(
        &self,
        request: Request<v1::ExtendLeaseRequest>,
    ) -> Answer<v1::ExtendLeaseResponse> {
        let results = vec![v1::ExtendLeaseResult::default(); request.get_ref().extensions.len()];
        self.extend.take(request).await.unwrap_or(Ok(v1::ExtendLeaseResponse { results })).map(Response::new)
    }

    async fn get_active_topics(
        &self,
        request: Request<v1::GetActiveTopicsRequest>,
    ) -> Answer<v1::GetActiveTopicsResponse> {
        let usual = v1::GetActiveTopicsResponse::default();
        self.topics.take(request).await.unwrap_or(Ok(usual)).map(Response::new)
    }
}
