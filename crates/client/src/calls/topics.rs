//! ListTopics and GetTopic: topics whatever state their items are in.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::{ALL_NAMESPACES, Timestamp, TopicSettings};

use super::{
    pauses::{TopicPause, pause},
    topic_settings::of_topic,
};
use crate::{
    client::Client,
    durations::{from_proto, time_from_proto},
    error::Error,
};

/// Which topics to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicListQuery {
    /// Those of all namespaces, in place of the client's own.
    pub all_namespaces: bool,
    /// Terms joined by AND, as `topic = "mail*" AND dead > 0`. Empty: all.
    pub filter: String,
    /// Empty: by name. `-ready`, `-leased`, `-scheduled`, `-dead` or `-oldest`: one page, by that figure.
    pub order_by: String,
    /// Topics of the page, at most 1,000; 0: 100.
    pub page_size: u32,
    /// The last page's [`TopicList::next`]; empty: the first page.
    pub page_token: String,
}

/// A page of topics.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicList {
    /// The topics.
    pub topics: Vec<TopicFigures>,
    /// The token of the next page; `None` after the last one.
    pub next: Option<String>,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
}

/// How a topic is.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicFigures {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub topic: String,
    /// Items that are ready.
    pub ready: u64,
    /// Items that are leased.
    pub leased: u64,
    /// Items that are not due yet.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
    /// When the item became ready that would be delivered next, of the shard where that was longest ago.
    pub oldest_ready_at: Option<Timestamp>,
    /// When the next scheduled item is due, if the server looked.
    pub next_due_at: Option<Timestamp>,
    /// Dequeue calls that wait for it.
    pub waiting: u64,
    /// Its pauses, and those of its namespace.
    pub pauses: Vec<TopicPause>,
    /// Its own settings.
    pub settings: TopicSettings,
    /// Their version. 0: there are none.
    pub settings_version: u64,
    /// What has become of its items so far, if anything was counted.
    pub counts: Option<Counts>,
    /// How much happens in it, if the server knows.
    pub rates: Option<Rates>,
    /// How long items had been ready when they were delivered, over the last one to two minutes.
    pub wait: Percentiles,
    /// How long deliveries had lasted when they were acked, over the last one to two minutes.
    pub handling: Percentiles,
    /// When a delivery began last, since the topic's shards got their present owners.
    pub last_delivery_at: Option<Timestamp>,
    /// When one was acked last, since the topic's shards got their present owners.
    pub last_ack_at: Option<Timestamp>,
}

/// How long something took. It may be a third too small, or half too large. `None`: nothing was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Percentiles {
    /// Half of them took no longer.
    pub p50: Option<Duration>,
    /// 99 of 100 took no longer.
    pub p99: Option<Duration>,
}

/// What has become of items so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Since when they count, in the shard where that is longest.
    pub since: Option<Timestamp>,
    /// Items enqueued.
    pub enqueued: u64,
    /// Deliveries that began.
    pub delivered: u64,
    /// Deliveries acked. An at-most-once delivery counts as acked.
    pub acked: u64,
    /// Deliveries that were nacked, or whose lease ran out.
    pub failed: u64,
    /// Items that became dead letters.
    pub dead_lettered: u64,
    /// Items whose time to live was over.
    pub expired: u64,
    /// Items and dead letters that left otherwise: cancelled, purged, deleted, kept for long enough, or gone
    /// to another topic.
    pub removed: u64,
}

/// How much happens a second, over the last seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Over how long it is counted.
    pub window: Duration,
    /// Items enqueued.
    pub enqueued: f64,
    /// Deliveries begun.
    pub delivered: f64,
    /// Deliveries acked. An at-most-once delivery counts as acked.
    pub acked: f64,
    /// Deliveries that were nacked, or whose lease ran out.
    pub failed: f64,
    /// Items that became dead letters.
    pub dead_lettered: f64,
}

pub(super) fn counts(counts: v1::Counts) -> Counts {
    let v1::Counts { since, enqueued, delivered, acked, failed, dead_lettered, expired, removed } = counts;
    let since = since.map(time_from_proto);
    Counts { since, enqueued, delivered, acked, failed, dead_lettered, expired, removed }
}

pub(super) fn rates(rates: v1::Rates) -> Rates {
    let v1::Rates { window, enqueued, delivered, acked, failed, dead_lettered } = rates;
    let window = window.map(from_proto).unwrap_or_default();
    Rates { window, enqueued, delivered, acked, failed, dead_lettered }
}

/// One topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicReport {
    /// How it is.
    pub figures: TopicFigures,
    /// Its ready items by priority, at most 100 priorities.
    pub priorities: Vec<PriorityCount>,
    /// There are more ready items than the priorities count.
    pub priorities_cut: bool,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
    /// What counts for it: its own settings, and what the namespace and the server have in place of absent
    /// ones.
    pub effective: TopicSettings,
}

/// The ready items of one priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityCount {
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// How many there are.
    pub ready: u64,
    /// When the first of them became ready.
    pub oldest_ready_at: Option<Timestamp>,
}

impl Client {
    /// One page of the topics.
    pub async fn list_topics(&self, query: TopicListQuery) -> Result<TopicList, Error> {
        let own = self.config.namespace.as_str();
        let request = v1::ListTopicsRequest {
            namespace: if query.all_namespaces { ALL_NAMESPACES } else { own }.to_owned(),
            filter: query.filter,
            order_by: query.order_by,
            page_size: query.page_size,
            page_token: query.page_token,
            recent: false,
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.list_topics(request).await }
            })
            .await?;
        Ok(TopicList {
            topics: answer.topics.into_iter().map(figures).collect(),
            next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
            incomplete_shards: answer.incomplete_shards,
        })
    }

    /// One topic.
    pub async fn topic(&self, topic: &str) -> Result<TopicReport, Error> {
        let request =
            v1::GetTopicRequest { namespace: self.config.namespace.clone(), topic: topic.to_owned() };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.get_topic(request).await }
            })
            .await?;
        let priority = |count: v1::PriorityCount| PriorityCount {
            priority: count.priority,
            ready: count.ready_count,
            oldest_ready_at: count.oldest_ready_at.map(time_from_proto),
        };
        Ok(TopicReport {
            figures: figures(answer.topic.unwrap_or_default()),
            priorities: answer.priorities.into_iter().map(priority).collect(),
            priorities_cut: answer.priorities_cut,
            incomplete_shards: answer.incomplete_shards,
            effective: answer.effective_settings.map(of_topic).unwrap_or_default(),
        })
    }
}

pub(super) fn figures(topic: v1::Topic) -> TopicFigures {
    TopicFigures {
        namespace: topic.namespace,
        topic: topic.topic,
        ready: topic.ready_count,
        leased: topic.leased_count,
        scheduled: topic.scheduled_count,
        dead: topic.dead_count,
        oldest_ready_at: topic.oldest_ready_at.map(time_from_proto),
        next_due_at: topic.next_due_at.map(time_from_proto),
        waiting: topic.waiting_calls,
        pauses: topic.pauses.into_iter().map(pause).collect(),
        settings: topic.settings.map(of_topic).unwrap_or_default(),
        settings_version: topic.settings_version,
        counts: topic.counts.map(counts),
        rates: topic.rates.map(rates),
        wait: Percentiles { p50: topic.wait_p50.map(from_proto), p99: topic.wait_p99.map(from_proto) },
        handling: Percentiles {
            p50: topic.handling_p50.map(from_proto),
            p99: topic.handling_p99.map(from_proto),
        },
        last_delivery_at: topic.last_delivery_at.map(time_from_proto),
        last_ack_at: topic.last_ack_at.map(time_from_proto),
    }
}
