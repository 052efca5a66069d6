//! Results of the client, as the messages that they came in.

use forebay_client::{ActiveTopic, EnqueuedItem, Error, NackOutcome, ReceivedItem, Timestamp};
use forebay_proto::{
    time::{to_duration, to_timestamp},
    v1,
};
use forebay_types::DeliveryPolicy;

/// The error of a member, without its details.
pub fn status(error: &Error) -> forebay_proto::Status {
    forebay_proto::Status {
        code: error.code() as i32,
        message: error.message().to_owned(),
        details: Vec::new(),
    }
}

pub fn reason(error: &Error) -> String {
    error.reason().map(|reason| reason.as_str().to_owned()).unwrap_or_default()
}

fn retry_after(error: &Error) -> Option<prost_types::Duration> {
    error.retry_after().map(to_duration)
}

/// The result of one item of an enqueue.
pub fn enqueued(result: &Result<EnqueuedItem, Error>) -> v1::EnqueueResult {
    match result {
        Ok(stored) => v1::EnqueueResult {
            item_id: stored.item_id.clone(),
            duplicate: stored.duplicate,
            first_enqueued_at: stored.first_enqueued_at.map(to_timestamp),
            ..Default::default()
        },
        Err(error) => v1::EnqueueResult {
            error: Some(status(error)),
            reason: reason(error),
            retry_after: retry_after(error),
            ..Default::default()
        },
    }
}

/// The result of one ack or nack.
pub fn settled(result: &Result<NackOutcome, Error>) -> v1::SettleResult {
    match result {
        Ok(done) => v1::SettleResult { delay_cut: done.delay_cut, ..Default::default() },
        Err(error) => v1::SettleResult {
            error: Some(status(error)),
            reason: reason(error),
            retry_after: retry_after(error),
            delay_cut: false,
        },
    }
}

/// The result of one extension.
pub fn extended(result: &Result<Timestamp, Error>) -> v1::ExtendLeaseResult {
    match result {
        Ok(end) => v1::ExtendLeaseResult { lease_expires_at: Some(to_timestamp(*end)), ..Default::default() },
        Err(error) => v1::ExtendLeaseResult {
            error: Some(status(error)),
            reason: reason(error),
            retry_after: retry_after(error),
            ..Default::default()
        },
    }
}

/// A delivery.
pub fn delivery(item: &ReceivedItem) -> v1::DequeuedItem {
    v1::DequeuedItem {
        item_id: item.item_id.clone(),
        receipt: item.receipt.clone(),
        topic: item.topic.clone(),
        priority: item.priority,
        payload: item.payload.clone(),
        metadata: item.metadata.clone(),
        headers: item.headers.clone(),
        attempt: item.attempt,
        enqueued_at: Some(to_timestamp(item.enqueued_at)),
        lease_expires_at: item.lease_expires_at.map(to_timestamp),
        expires_at: item.expires_at.map(to_timestamp),
        delivery_policy: match item.policy {
            DeliveryPolicy::AtLeastOnce => v1::DeliveryPolicy::AtLeastOnce.into(),
            DeliveryPolicy::AtMostOnce => v1::DeliveryPolicy::AtMostOnce.into(),
        },
        failures: item.failures,
    }
}

/// An active topic.
pub fn active_topic(topic: &ActiveTopic) -> v1::ActiveTopic {
    v1::ActiveTopic {
        topic: topic.topic.clone(),
        ready_count: topic.ready,
        best_priority: topic.best_priority,
        oldest_ready_at: Some(to_timestamp(topic.oldest_ready_at)),
        leased_count: topic.leased,
        scheduled_count: topic.scheduled,
    }
}
