//! Topics of all nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use forebay_engine::{Latencies, TopicsCall};
use forebay_peers::{
    PeerLinks,
    looks::{
        Part, latencies,
        topics::{self, add_counts, add_rates},
    },
};
use forebay_proto::{
    time::{earlier, later},
    v1,
};
use forebay_types::{Namespace, Refusal, TopicName};

use super::Gather;

/// A part of the topics, in order.
#[derive(Debug, Default)]
pub struct TopicScan {
    /// By namespace and name.
    pub topics: Vec<v1::Topic>,
    /// All up to this one were looked at. `None`: there are no more.
    pub through: Option<TopicName>,
    /// The shards that were looked at.
    pub shards: BTreeSet<u32>,
    /// Shards of them that told all that they have counted. Empty, if that was not asked for.
    pub counted: BTreeSet<u32>,
    /// How many topics were looked at.
    pub scanned: u64,
}

impl Gather {
    /// The topics behind one of them. Each node gives `limit` of them at most, and all that is known of all
    /// nodes is kept.
    pub async fn topics(&self, call: TopicsCall) -> Result<TopicScan, Refusal> {
        let mut scan = Merge::default();
        self.look(&topics::request(&call)).await?.into_iter().for_each(|part| scan.add(part));
        Ok(scan.end())
    }

    /// The namespace counts anew in all shards that can be told. Returns the others.
    pub async fn forget_counts(&self, namespace: &Namespace) -> Result<Vec<u32>, Refusal> {
        let ask = |links: Arc<PeerLinks>, address: String| async move {
            links.forget_counts(&address, namespace).await
        };
        let (own, others) = tokio::join!(self.engine.forget_counts(namespace.clone()), self.ask_others(ask));
        let told = own?.into_iter().map(|id| id.0).chain(others.into_iter().flatten());
        Ok(self.incomplete(&told.collect()))
    }

    /// A topic, as all nodes see it.
    pub async fn topic(&self, name: &TopicName) -> Result<v1::GetTopicResponse, Refusal> {
        let request =
            v1::GetTopicRequest { namespace: name.namespace.to_string(), topic: name.topic.to_string() };
        let parts = self.look(&request).await?;
        let mut sum = v1::GetTopicResponse::default();
        let mut shards = BTreeSet::new();
        let mut priorities: BTreeMap<i32, v1::PriorityCount> = BTreeMap::new();
        let mut took = None;
        for Part { answer: part, rest } in parts {
            shards.extend(rest.shards);
            sum.priorities_cut |= part.priorities_cut;
            match (&mut sum.topic, part.topic) {
                (Some(sum), Some(topic)) => add(sum, &topic),
                (sum, topic) => *sum = sum.take().or(topic),
            }
            let counted = rest.latencies.first().and_then(|it| it.latencies.as_ref());
            latencies::add(&mut took, counted.map(latencies::of_message));
            for count in part.priorities {
                let sum = priorities.entry(count.priority).or_insert_with(|| v1::PriorityCount {
                    priority: count.priority,
                    ..v1::PriorityCount::default()
                });
                sum.ready_count += count.ready_count;
                sum.oldest_ready_at = earlier(sum.oldest_ready_at.take(), count.oldest_ready_at);
            }
        }
        if let (Some(topic), Some(took)) = (&mut sum.topic, took) {
            latencies::tell(topic, &took);
        }
        sum.priorities = priorities.into_values().collect();
        sum.priorities_cut |= sum.priorities.len() > PRIORITIES_MAX;
        sum.priorities.truncate(PRIORITIES_MAX);
        sum.incomplete_shards = self.incomplete(&shards);
        Ok(sum)
    }
}

/// Priorities of a topic that are told.
const PRIORITIES_MAX: usize = 100;

/// A topic, as far as one node has it.
struct OfNode {
    /// The topic, without percentiles.
    topic: v1::Topic,
    /// How long items waited, and deliveries lasted.
    latencies: Option<Box<Latencies>>,
}

/// Answers of nodes that are put together.
#[derive(Default)]
struct Merge {
    /// Topics of one node after those of another, each by namespace and name.
    parts: Vec<OfNode>,
    /// The scan, without its topics.
    scan: TopicScan,
}

impl Merge {
    fn add(&mut self, part: Part<v1::ListTopicsResponse>) {
        let Self { parts, scan } = self;
        let through = part.through().as_deref().and_then(topics::name_of);
        scan.through = scan.through.take().into_iter().chain(through).min();
        let Part { answer, rest } = part;
        scan.shards.extend(rest.shards);
        scan.counted.extend(rest.counted_shards);
        scan.scanned += answer.scanned;
        let first = parts.len();
        parts.extend(answer.topics.into_iter().map(|topic| OfNode { topic, latencies: None }));
        for told in rest.latencies {
            if let (Some(part), Some(told)) = (parts.get_mut(first + told.topic as usize), &told.latencies) {
                part.latencies = Some(latencies::of_message(told));
            }
        }
    }

    /// Ends the scan. Topics that a node did not get to are left to the next one.
    fn end(self) -> TopicScan {
        let Self { mut parts, mut scan } = self;
        // Parts that are in order already are merged, and one part is left as it is: this is done for each of
        // a million topics.
        parts.sort_by(|one, other| one.name().cmp(&other.name()));
        parts.dedup_by(|part, sum| {
            let is_same = part.name() == sum.name();
            if is_same {
                add(&mut sum.topic, &part.topic);
                latencies::add(&mut sum.latencies, part.latencies.take());
            }
            is_same
        });
        if let Some(through) = &scan.through {
            let through = (&*through.namespace, &*through.topic);
            parts.truncate(parts.partition_point(|part| part.name() <= through));
        }
        scan.topics = parts.into_iter().map(OfNode::told).collect();
        scan
    }
}

impl OfNode {
    fn name(&self) -> (&str, &str) {
        (&self.topic.namespace, &self.topic.topic)
    }

    /// As callers see it.
    fn told(self) -> v1::Topic {
        let Self { mut topic, latencies } = self;
        if let Some(latencies) = latencies {
            latencies::tell(&mut topic, &latencies);
        }
        topic
    }
}

/// Adds what another node has of a topic.
fn add(sum: &mut v1::Topic, part: &v1::Topic) {
    let unknown = |topic: &v1::Topic| topic.scheduled_count > 0 && topic.next_due_at.is_none();
    let is_unknown = unknown(sum) || unknown(part);
    sum.ready_count += part.ready_count;
    sum.leased_count += part.leased_count;
    sum.scheduled_count += part.scheduled_count;
    sum.dead_count += part.dead_count;
    sum.waiting_calls += part.waiting_calls;
    sum.oldest_ready_at = earlier(sum.oldest_ready_at.take(), part.oldest_ready_at);
    add_counts(&mut sum.counts, part.counts.as_ref());
    add_rates(&mut sum.rates, part.rates.as_ref());
    sum.last_delivery_at = later(sum.last_delivery_at, part.last_delivery_at);
    sum.last_ack_at = later(sum.last_ack_at, part.last_ack_at);
    sum.next_due_at = earlier(sum.next_due_at.take(), part.next_due_at).filter(|_| !is_unknown);
}

#[cfg(test)]
mod tests {
    use forebay_proto::peer;

    use super::*;

    fn page(names: &[&str], through: Option<&str>) -> Part<v1::ListTopicsResponse> {
        let topic = |name: &&str| v1::Topic {
            namespace: "n".to_owned(),
            topic: (*name).to_owned(),
            ready_count: 1,
            ..v1::Topic::default()
        };
        let position = |topic| topics::position(&TopicName::new("n", topic)).into();
        let answer = v1::ListTopicsResponse {
            topics: names.iter().map(topic).collect(),
            scanned: names.len() as u64,
            ..v1::ListTopicsResponse::default()
        };
        let through = through.map(position).unwrap_or_default();
        Part { answer, rest: peer::AskResponse { through, ..peer::AskResponse::default() } }
    }

    fn merged(pages: &[Part<v1::ListTopicsResponse>]) -> (Vec<(String, u64)>, Option<String>) {
        let mut merge = Merge::default();
        pages.iter().cloned().for_each(|page| merge.add(page));
        let TopicScan { topics, through, .. } = merge.end();
        let topics = topics.into_iter().map(|topic| (topic.topic, topic.ready_count)).collect();
        (topics, through.map(|name| name.topic.to_string()))
    }

    #[test]
    fn a_topic_of_several_nodes_is_one_and_all_are_in_order() {
        let pages = [page(&["b", "d"], None), page(&["a", "b", "e"], None), page(&["b"], None)];
        let expected = [("a", 1), ("b", 3), ("d", 1), ("e", 1)];
        assert_eq!(merged(&pages), (expected.map(|(name, ready)| (name.to_owned(), ready)).to_vec(), None));
    }

    #[test]
    fn what_a_node_did_not_get_to_is_left_to_the_next_scan() {
        let pages =
            [page(&["b", "d", "x"], None), page(&["a", "d"], Some("d")), page(&["c", "e"], Some("e"))];
        let (topics, through) = merged(&pages);
        let names: Vec<&str> = topics.iter().map(|(name, _)| &**name).collect();
        assert_eq!((names, through.as_deref()), (vec!["a", "b", "c", "d"], Some("d")));
        assert_eq!(topics[3].1, 2);
    }
}
