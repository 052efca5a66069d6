//! Topics, as operators look at them.

use forebay_engine::{
    Counted, PriorityCount, Rates, TopicDetails, TopicFigures, TopicScope, TopicsCall, TopicsPage,
};
use forebay_proto::{peer, v1};
use forebay_types::{ALL_NAMESPACES, TopicName};

use super::latencies;
use crate::grpc::{earlier, to_timestamp};

/// What the counts and rates of a topic, or of a namespace, take at most in an answer.
pub const FLOW_BYTES: usize = 128;

/// What this node has, as other nodes are told.
pub fn topics_response(page: TopicsPage) -> peer::ListTopicsResponse {
    let TopicsPage { topics, through, shards, counted, scanned } = page;
    let of_topic = |(place, topic): (usize, &TopicFigures)| {
        let latencies = Some(latencies::message(topic.latencies.as_deref()?));
        Some(peer::TopicLatencies { topic: u32::try_from(place).ok()?, latencies })
    };
    peer::ListTopicsResponse {
        latencies: topics.iter().enumerate().filter_map(of_topic).collect(),
        topics: topics.into_iter().map(topic).collect(),
        through: through.as_ref().map(topic_name),
        shards: shards.into_iter().map(|id| id.0).collect(),
        scanned: scanned as u64,
        counted_shards: counted.into_iter().map(|id| id.0).collect(),
    }
}

/// A topic as callers see it.
pub fn topic(topic: TopicFigures) -> v1::Topic {
    v1::Topic {
        namespace: topic.name.namespace.to_string(),
        topic: topic.name.topic.to_string(),
        ready_count: topic.ready,
        leased_count: topic.leased,
        scheduled_count: topic.scheduled,
        dead_count: topic.dead,
        oldest_ready_at: topic.oldest_ready_at.map(to_timestamp),
        next_due_at: topic.next_due_at.map(to_timestamp),
        waiting_calls: topic.waiting as u64,
        // The node that took the call adds them.
        pauses: Vec::new(),
        settings: None,
        settings_version: 0,
        counts: topic.counted.map(counts),
        rates: Some(rates(topic.rates)),
        // They are told once the histograms of all nodes are added up.
        wait_p50: None,
        wait_p99: None,
        handling_p50: None,
        handling_p99: None,
        last_delivery_at: topic.last_delivery_at.map(to_timestamp),
        last_ack_at: topic.last_ack_at.map(to_timestamp),
        // The node that took the call asks for it.
        recent_ready: Vec::new(),
    }
}

fn counts(counted: Counted) -> v1::Counts {
    let Counted { since, enqueued, delivered, acked, failed, dead_lettered, expired, removed } = counted;
    let since = Some(to_timestamp(since));
    v1::Counts { since, enqueued, delivered, acked, failed, dead_lettered, expired, removed }
}

fn rates(rates: Rates) -> v1::Rates {
    let Rates { enqueued, delivered, acked, failed, dead_lettered } = rates;
    v1::Rates {
        window: prost_types::Duration::try_from(Rates::WINDOW).ok(),
        enqueued,
        delivered,
        acked,
        failed,
        dead_lettered,
    }
}

/// Adds the counts of another node, or of another topic.
pub fn add_counts(sum: &mut Option<v1::Counts>, part: Option<&v1::Counts>) {
    let Some(part) = part else { return };
    let Some(sum) = sum else { return *sum = Some(*part) };
    sum.since = earlier(sum.since, part.since);
    sum.enqueued += part.enqueued;
    sum.delivered += part.delivered;
    sum.acked += part.acked;
    sum.failed += part.failed;
    sum.dead_lettered += part.dead_lettered;
    sum.expired += part.expired;
    sum.removed += part.removed;
}

/// Adds the rates of another node, or of another topic.
pub fn add_rates(sum: &mut Option<v1::Rates>, part: Option<&v1::Rates>) {
    let Some(part) = part else { return };
    let Some(sum) = sum else { return *sum = Some(*part) };
    sum.enqueued += part.enqueued;
    sum.delivered += part.delivered;
    sum.acked += part.acked;
    sum.failed += part.failed;
    sum.dead_lettered += part.dead_lettered;
}

/// What this node has of a topic, as other nodes are told.
pub fn topic_details(details: TopicDetails) -> peer::GetTopicResponse {
    let TopicDetails { topic: figures, priorities, priorities_cut, shards } = details;
    let priority = |count: PriorityCount| v1::PriorityCount {
        priority: count.priority,
        ready_count: count.ready,
        oldest_ready_at: Some(to_timestamp(count.oldest_ready_at)),
    };
    let counted = figures.as_ref().and_then(|figures| figures.latencies.as_deref());
    peer::GetTopicResponse {
        latencies: counted.map(latencies::message),
        topic: figures.map(topic),
        priorities: priorities.into_iter().map(priority).collect(),
        priorities_cut,
        shards: shards.into_iter().map(|id| id.0).collect(),
    }
}

/// A topic's name.
pub fn topic_name(name: &TopicName) -> peer::TopicName {
    peer::TopicName { namespace: name.namespace.to_string(), topic: name.topic.to_string() }
}

/// A request of another node.
pub fn topics_call(request: peer::ListTopicsRequest) -> TopicsCall {
    let namespace = (request.namespace != ALL_NAMESPACES).then(|| request.namespace.into());
    TopicsCall {
        scope: TopicScope { namespace, prefix: request.prefix },
        after: request.after.map(|name| TopicName::new(name.namespace, name.topic)),
        limit: request.limit as usize,
        due: request.due,
        forgotten: request.forgotten,
    }
}

/// A request to another node.
pub fn topics_request(call: &TopicsCall) -> peer::ListTopicsRequest {
    peer::ListTopicsRequest {
        namespace: call.scope.namespace.as_deref().unwrap_or(ALL_NAMESPACES).to_owned(),
        prefix: call.scope.prefix.clone(),
        after: call.after.as_ref().map(topic_name),
        limit: u32::try_from(call.limit).unwrap_or(u32::MAX),
        due: call.due,
        forgotten: call.forgotten,
    }
}
