//! How namespaces and topics were when the node looked last, for those who read the metrics.

use std::collections::BTreeMap;

use forebay_engine::{OwnMetrics, ShardFigures, TopicFigures};
use forebay_types::Namespace;

/// Figures that the last look saw.
#[derive(Debug, Default)]
pub struct Latest {
    /// By namespace. Those without metrics of their own are one, [`OwnMetrics::OTHERS`].
    pub namespaces: BTreeMap<Namespace, ShardFigures>,
    /// Topics that have metrics of their own.
    pub topics: Vec<TopicFigures>,
}

impl Latest {
    /// Of topics in memory, by namespace and name.
    pub fn of(topics: &[TopicFigures]) -> Self {
        let mut latest = Self::default();
        for of_one in topics.chunk_by(|one, other| one.name.namespace == other.name.namespace) {
            let Some(first) = of_one.first() else { continue };
            let mut sum = ShardFigures::default();
            of_one.iter().for_each(|topic| sum += figures(topic));
            let reported = first.reported.namespace;
            let name = if reported { first.name.namespace.clone() } else { OwnMetrics::OTHERS.into() };
            *latest.namespaces.entry(name).or_default() += sum;
        }
        latest.topics.extend(topics.iter().filter(|topic| topic.reported.topic).cloned());
        latest
    }
}

fn figures(topic: &TopicFigures) -> ShardFigures {
    let TopicFigures { ready, leased, scheduled, dead, oldest_ready_at, rates, .. } = *topic;
    ShardFigures { ready, leased, scheduled, dead, oldest_ready_at, rates }
}

#[cfg(test)]
mod tests {
    use forebay_engine::Rates;
    use forebay_types::{Timestamp, TopicName};

    use super::*;

    fn topic(namespace: &str, name: &str, ready: u64, since: i64, reported: OwnMetrics) -> TopicFigures {
        TopicFigures {
            name: TopicName::new(namespace, name),
            ready,
            leased: 1,
            scheduled: 0,
            dead: 2,
            oldest_ready_at: Some(Timestamp::from_micros(since)),
            next_due_at: None,
            waiting: 0,
            counted: None,
            rates: Rates::default(),
            latencies: None,
            last_delivery_at: None,
            last_ack_at: None,
            paused: [false; 2],
            reported,
        }
    }

    #[test]
    fn topics_are_added_up_and_namespaces_without_metrics_are_one() {
        let both = OwnMetrics { namespace: true, topic: true };
        let (namespace, none) = (OwnMetrics { topic: false, ..both }, OwnMetrics::default());
        let topics = [
            topic("a", "t", 5, 9, both),
            topic("a", "u", 7, 3, namespace),
            topic("b", "t", 1, 4, none),
            topic("c", "t", 2, 2, none),
        ];
        let latest = Latest::of(&topics);
        let sums: Vec<_> = latest
            .namespaces
            .iter()
            .map(|(name, sum)| (&**name, sum.ready, sum.dead, sum.oldest_ready_at.unwrap().as_micros()))
            .collect();
        assert_eq!(sums, [("(others)", 3, 4, 2), ("a", 12, 4, 3)]);
        let names: Vec<_> = latest.topics.iter().map(|topic| topic.name.to_string()).collect();
        assert_eq!(names, ["a/t"]);
    }
}
