//! ListTopics and GetTopic.

use forebay_engine::{
    Engine, LifetimeCounts, PriorityCount, Rates, TopicDetails, TopicFigures, TopicScope, TopicsCall,
    TopicsPage,
};
use forebay_proto::{
    peer,
    time::{earlier, to_duration, to_timestamp},
    v1,
};
use forebay_types::{ALL_NAMESPACES, Namespace, Refusal, TopicName};

use super::{Look, Part, latencies};
use crate::history::History;

/// The most topics of one look.
const TOPICS_MAX: usize = 1_000;

/// Bytes that the counts and rates of a topic, or of a namespace, take at most in an answer.
pub const FLOW_BYTES: usize = 128;

impl Look for peer::ListTopicsRequest {
    const NAME: &'static str = "ListTopics";
    type Answer = v1::ListTopicsResponse;

    fn caller(&self) -> Namespace {
        self.namespace.as_str().into()
    }

    async fn look(self, engine: &Engine, _: &History) -> Result<Part<Self::Answer>, Refusal> {
        let call = TopicsCall {
            scope: TopicScope {
                namespace: (self.namespace != ALL_NAMESPACES).then(|| self.namespace.into()),
                prefix: self.prefix,
            },
            after: self.after.map(|name| TopicName::new(name.namespace, name.topic)),
            limit: (self.limit as usize).clamp(1, TOPICS_MAX),
            due: self.due,
            forgotten: self.forgotten,
        };
        let TopicsPage { topics, through, shards, counted, scanned } = engine.list_topics(call).await?;
        let of_topic = |(place, topic): (usize, &TopicFigures)| {
            let latencies = Some(latencies::message(topic.latencies.as_deref()?));
            Some(peer::TopicLatencies { topic: u32::try_from(place).ok()?, latencies })
        };
        let latencies = topics.iter().enumerate().filter_map(of_topic).collect();
        let topics = topics.into_iter().map(topic).collect();
        let answer = Self::Answer { topics, scanned: scanned as u64, ..Self::Answer::default() };
        let mut part = Part::new(answer, shards);
        part.rest.through = through.map(|name| position(&name).into()).unwrap_or_default();
        part.rest.latencies = latencies;
        part.rest.counted_shards = counted.into_iter().map(|id| id.0).collect();
        Ok(part)
    }
}

impl Look for v1::GetTopicRequest {
    const NAME: &'static str = "GetTopic";
    type Answer = v1::GetTopicResponse;

    fn caller(&self) -> Namespace {
        self.namespace.as_str().into()
    }

    async fn look(self, engine: &Engine, _: &History) -> Result<Part<Self::Answer>, Refusal> {
        let details = engine.topic(TopicName::new(self.namespace, self.topic)).await?;
        let TopicDetails { topic: figures, priorities, priorities_cut, shards } = details;
        let priority = |count: PriorityCount| v1::PriorityCount {
            priority: count.priority,
            ready_count: count.ready,
            oldest_ready_at: Some(to_timestamp(count.oldest_ready_at)),
        };
        let took = figures.as_ref().and_then(|figures| figures.latencies.as_deref());
        let took = took.map(latencies::message);
        let answer = Self::Answer {
            topic: figures.map(topic),
            priorities: priorities.into_iter().map(priority).collect(),
            priorities_cut,
            ..Self::Answer::default()
        };
        let mut part = Part::new(answer, shards);
        part.rest.latencies =
            took.into_iter().map(|it| peer::TopicLatencies { topic: 0, latencies: Some(it) }).collect();
        Ok(part)
    }
}

/// A place among topics: positions are in the order of the names. No name has a zero byte.
pub fn position(name: &TopicName) -> Vec<u8> {
    [name.namespace.as_bytes(), &[0], name.topic.as_bytes()].concat()
}

/// The name at a position. `None`: it is none.
pub fn name_of(position: &[u8]) -> Option<TopicName> {
    let (namespace, topic) = std::str::from_utf8(position).ok()?.split_once('\0')?;
    Some(TopicName::new(namespace, topic))
}

/// A topic as callers see it.
fn topic(topic: TopicFigures) -> v1::Topic {
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

fn counts(counted: LifetimeCounts) -> v1::Counts {
    let LifetimeCounts { since, enqueued, delivered, acked, failed, dead_lettered, expired, removed } =
        counted;
    let since = Some(to_timestamp(since));
    v1::Counts { since, enqueued, delivered, acked, failed, dead_lettered, expired, removed }
}

fn rates(rates: Rates) -> v1::Rates {
    let Rates { enqueued, delivered, acked, failed, dead_lettered } = rates;
    v1::Rates { window: Some(to_duration(Rates::WINDOW)), enqueued, delivered, acked, failed, dead_lettered }
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

/// A topic's name.
pub fn topic_name(name: &TopicName) -> peer::TopicName {
    peer::TopicName { namespace: name.namespace.to_string(), topic: name.topic.to_string() }
}

/// A call as a look.
pub fn request(call: &TopicsCall) -> peer::ListTopicsRequest {
    peer::ListTopicsRequest {
        namespace: call.scope.namespace.as_deref().unwrap_or(ALL_NAMESPACES).to_owned(),
        prefix: call.scope.prefix.clone(),
        after: call.after.as_ref().map(topic_name),
        limit: u32::try_from(call.limit).unwrap_or(u32::MAX),
        due: call.due,
        forgotten: call.forgotten,
    }
}
