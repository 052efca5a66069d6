//! The calls, made without retries, and recorded in the history.

use std::time::Duration;

use forebay_proto::v1::{
    Ack, AckRequest, DequeueRequest, DequeuedItem, EnqueueItem, EnqueueRequest, ExtendLeaseRequest,
    GetActiveTopicsRequest, LeaseExtension, Nack, NackRequest, TopicDemand,
    queue_service_client::QueueServiceClient, topic_demand::Selector,
};
use tonic::{Code, Request, transport::Channel};
use tonic_types::{RpcStatusExt as _, StatusExt as _};

use crate::history::{Call, Event, History, Outcome, SettlementEnd, Verb};

/// The namespace of all items.
pub const NAMESPACE: &str = "e2e";
/// The deadline of each call. A frozen node does not answer at all.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// The worst outcome among an enqueue's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorstOutcome {
    Done,
    Refused,
    Unknown,
}

/// A client that records everything it sees.
#[derive(Clone)]
pub struct Rpc<'a> {
    /// Makes the calls.
    client: QueueServiceClient<Channel>,
    /// Records their outcomes.
    history: &'a History,
    /// The deadline of each call.
    deadline: Duration,
}

impl<'a> Rpc<'a> {
    pub fn new(channel: Channel, history: &'a History) -> Self {
        Self::within(channel, history, CALL_TIMEOUT)
    }

    /// The same with this deadline for each call.
    pub fn within(channel: Channel, history: &'a History, deadline: Duration) -> Self {
        Self { client: QueueServiceClient::new(channel), history, deadline }
    }

    /// Enqueues these items. Returns the worst of their outcomes.
    pub async fn enqueue(&mut self, items: &[(u64, EnqueueItem)], request_id: &str) -> WorstOutcome {
        let request = EnqueueRequest {
            namespace: NAMESPACE.into(),
            items: items.iter().map(|(_, item)| item.clone()).collect(),
            request_id: request_id.into(),
            ..EnqueueRequest::default()
        };
        let began = self.history.now();
        let request = self.limited(request);
        let answer = self.client.enqueue(request).await;
        let call = self.since(began);
        let outcomes: Vec<Outcome<String>> = match answer {
            Ok(answer) => {
                let results = answer.into_inner().results;
                assert_eq!(results.len(), items.len(), "one answer a member");
                let outcomes = results.into_iter().map(|result| match result.error {
                    None => Outcome::Ok(result.item_id),
                    Some(error) => refused(Refusal::of_member(&error)),
                });
                outcomes.collect()
            }
            Err(status) => vec![refused(Refusal::of_call(&status)); items.len()],
        };
        let worst = outcomes.iter().map(|outcome| match outcome {
            Outcome::Ok(_) => WorstOutcome::Done,
            Outcome::Failed(_) => WorstOutcome::Refused,
            Outcome::Unknown(_) => WorstOutcome::Unknown,
        });
        let worst = worst.max().unwrap_or(WorstOutcome::Done);
        for ((item, _), outcome) in items.iter().zip(outcomes) {
            self.history.record(Event::Enqueue { call, item: *item, outcome });
        }
        worst
    }

    /// Dequeues up to `max` items of each topic. `None` if the call failed.
    pub async fn dequeue(
        &mut self,
        topics: &[String],
        max: u32,
        wait: Duration,
        lease: Duration,
    ) -> Option<Vec<DequeuedItem>> {
        let demand =
            |topic: &String| TopicDemand { selector: Some(Selector::Topic(topic.clone())), max_items: max };
        let request = DequeueRequest {
            namespace: NAMESPACE.into(),
            demands: topics.iter().map(demand).collect(),
            wait: Some(span(wait)),
            lease_duration: Some(span(lease)),
            ..DequeueRequest::default()
        };
        let began = self.history.now();
        let request = self.limited(request);
        let answer = self.client.dequeue(request).await;
        let call = self.since(began);
        let items = answer.ok()?.into_inner().items;
        for item in &items {
            self.history.record(Event::Delivery {
                call,
                item: read_payload(&item.payload),
                id: item.item_id.clone(),
                receipt: item.receipt.clone(),
                attempt: item.attempt,
                lease,
            });
        }
        Some(items)
    }

    /// Applies `verb` to each of these receipts. Returns each result.
    pub async fn settle(&mut self, verb: Verb, receipts: &[String]) -> Vec<SettlementEnd> {
        let namespace = NAMESPACE.to_owned();
        let receipts_owned = receipts.iter().cloned();
        let began = self.history.now();
        let answer = match verb {
            Verb::Ack => {
                let acks = receipts_owned.map(|receipt| Ack { receipt }).collect();
                let request = self.limited(AckRequest { namespace, acks });
                let answer = self.client.ack(request).await;
                answer.map(|answer| answer.into_inner().results.into_iter().map(|r| r.error).collect())
            }
            Verb::Nack => {
                let nacks = receipts_owned.map(|receipt| Nack { receipt, ..Nack::default() }).collect();
                let request = self.limited(NackRequest { namespace, nacks });
                let answer = self.client.nack(request).await;
                answer.map(|answer| answer.into_inner().results.into_iter().map(|r| r.error).collect())
            }
            Verb::Extend(to) => {
                let extensions = receipts_owned
                    .map(|receipt| LeaseExtension { receipt, lease_duration: Some(span(to)) })
                    .collect();
                let request = self.limited(ExtendLeaseRequest { namespace, extensions });
                let answer = self.client.extend_lease(request).await;
                answer.map(|answer| answer.into_inner().results.into_iter().map(|r| r.error).collect())
            }
        };
        let call = self.since(began);
        let settled: Vec<SettlementEnd> = match answer {
            Ok(errors) => {
                let errors: Vec<Option<forebay_proto::Status>> = errors;
                assert_eq!(errors.len(), receipts.len(), "one answer a member");
                let settled = errors.iter().map(|error| match error {
                    None => SettlementEnd::Ok,
                    Some(error) => not_settled(Refusal::of_member(error)),
                });
                settled.collect()
            }
            Err(status) => vec![not_settled(Refusal::of_call(&status)); receipts.len()],
        };
        for (receipt, settled) in receipts.iter().zip(&settled) {
            let (receipt, settled) = (receipt.clone(), settled.clone());
            self.history.record(Event::Settle { call, verb, receipt, settled });
        }
        settled
    }

    /// The topics that have a ready item.
    pub async fn active_topics(&mut self) -> Result<Vec<String>, tonic::Status> {
        let request = GetActiveTopicsRequest { namespace: NAMESPACE.into(), ..Default::default() };
        let request = self.limited(request);
        let answer = self.client.get_active_topics(request).await?;
        Ok(answer.into_inner().topics.into_iter().map(|topic| topic.topic).collect())
    }

    fn limited<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.deadline);
        request
    }

    fn since(&self, began: Duration) -> Call {
        Call { began, ended: self.history.now() }
    }
}

/// The payload of an item: its number, then bytes derived from it.
pub fn payload(item: u64) -> Vec<u8> {
    let mut payload = item.to_be_bytes().to_vec();
    payload.extend((0..item % 300).map(|at| (item.wrapping_mul(31).wrapping_add(at) % 251) as u8));
    payload
}

/// The number in a payload, if it is intact.
pub fn read_payload(bytes: &[u8]) -> Option<u64> {
    let item = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    (payload(item) == bytes).then_some(item)
}

/// Why a member failed.
struct Refusal {
    /// It may have taken effect.
    maybe_done: bool,
    reason: String,
    fate: Option<String>,
    description: String,
}

impl Refusal {
    fn of_call(status: &tonic::Status) -> Self {
        Self::new(status.code(), status.message(), status.get_details_error_info())
    }

    fn of_member(status: &forebay_proto::Status) -> Self {
        Self::new(Code::from_i32(status.code), &status.message, status.get_details_error_info())
    }

    fn new(code: Code, message: &str, info: Option<tonic_types::ErrorInfo>) -> Self {
        let (reason, mut metadata) = info.map_or_else(Default::default, |info| (info.reason, info.metadata));
        // An answer without a reason is not from Forebay: a connection broke or a deadline passed.
        let maybe_done = reason.is_empty() || reason == "OUTCOME_UNKNOWN" || code == Code::DeadlineExceeded;
        Self {
            maybe_done,
            description: format!("{code:?} {reason}: {message}"),
            fate: metadata.remove("item"),
            reason,
        }
    }
}

fn refused(refusal: Refusal) -> Outcome<String> {
    if refusal.maybe_done {
        Outcome::Unknown(refusal.description)
    } else {
        Outcome::Failed(refusal.description)
    }
}

fn not_settled(refusal: Refusal) -> SettlementEnd {
    match refusal.fate {
        Some(fate) if refusal.reason == "LEASE_LOST" => SettlementEnd::Lost(fate),
        _ if refusal.maybe_done => SettlementEnd::Unknown(refusal.description),
        _ => SettlementEnd::Failed(refusal.description),
    }
}

pub fn span(span: Duration) -> prost_types::Duration {
    span.try_into().expect("a test's spans are short")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_its_number() {
        for item in [0, 1, 299, 300, u64::MAX] {
            assert_eq!(read_payload(&payload(item)), Some(item));
        }
    }

    #[test]
    fn every_changed_byte_is_detected() {
        let right = payload(4_711);
        for at in 0..right.len() {
            let mut changed = right.clone();
            changed[at] ^= 1;
            assert_eq!(read_payload(&changed), None, "{at}");
        }
        assert_eq!(read_payload(&right[..right.len() - 1]), None);
        assert_eq!(read_payload(b"short"), None);
    }
}
