//! ListConsumers.

use forebay_engine::{ConsumerFigures, ConsumerName, ConsumersCall, Engine};
use forebay_proto::{
    time::{earlier, to_duration, to_timestamp},
    v1,
};
use forebay_types::{ALL_NAMESPACES, Namespace, Refusal};

use super::{Look, Part, malformed};
use crate::history::History;

impl Look for v1::ListConsumersRequest {
    const NAME: &'static str = "ListConsumers";
    type Answer = v1::ListConsumersResponse;

    fn caller(&self) -> Namespace {
        self.namespace.as_str().into()
    }

    async fn look(self, engine: &Engine, _: &History) -> Result<Part<Self::Answer>, Refusal> {
        let Self { namespace, page_size, page_token } = self;
        let after = match page_token.as_str() {
            "" => None,
            position => Some(name_of(position).ok_or_else(|| malformed("position"))?),
        };
        let call = ConsumersCall {
            namespace: (namespace != ALL_NAMESPACES).then(|| namespace.into()),
            after,
            limit: (page_size as usize).clamp(1, ConsumerFigures::CONSUMERS_MAX),
        };
        let seen = engine.consumers(&call).await?;
        let consumers = seen.consumers.into_iter().map(consumer).collect();
        let answer = Self::Answer { consumers, consumers_cut: seen.cut, ..Self::Answer::default() };
        let mut part = Part::new(answer, seen.shards);
        part.rest.through =
            seen.through.map(|(namespace, name)| position(&namespace, &name).into()).unwrap_or_default();
        Ok(part)
    }
}

/// A place among consumers: positions are in the order of the names. A namespace has no zero byte.
pub fn position(namespace: &str, name: &str) -> String {
    format!("{namespace}\0{name}")
}

/// The name at a position. `None`: it is none.
pub fn name_of(position: &str) -> Option<ConsumerName> {
    position.split_once('\0').map(|(namespace, name)| (namespace.into(), name.to_owned()))
}

fn consumer(figures: ConsumerFigures) -> v1::Consumer {
    let (last_seen_at, from) = figures.last_seen.unzip();
    let from = from.unwrap_or_default();
    v1::Consumer {
        namespace: figures.namespace.to_string(),
        name: figures.name,
        topics: figures.topics.iter().map(ToString::to_string).collect(),
        topics_cut: figures.topics_cut,
        leased_count: figures.leased,
        oldest_lease_at: figures.oldest_lease_at.map(to_timestamp),
        acks_per_second: figures.acked,
        failures_per_second: figures.failed,
        // Of all nodes together; see `finish`.
        failure_ratio: 0.0,
        window: Some(to_duration(ConsumerFigures::WINDOW)),
        last_seen_at: last_seen_at.map(to_timestamp),
        peer: from.peer,
        client: from.client,
    }
}

/// Adds what another node knows of a consumer.
pub fn add(sum: &mut v1::Consumer, part: v1::Consumer) {
    let at = |time: &prost_types::Timestamp| (time.seconds, time.nanos);
    sum.topics.extend(part.topics);
    sum.topics_cut |= part.topics_cut;
    sum.leased_count += part.leased_count;
    sum.oldest_lease_at = earlier(sum.oldest_lease_at, part.oldest_lease_at);
    sum.acks_per_second += part.acks_per_second;
    sum.failures_per_second += part.failures_per_second;
    if part.last_seen_at.as_ref().map(at) > sum.last_seen_at.as_ref().map(at) {
        (sum.last_seen_at, sum.peer, sum.client) = (part.last_seen_at, part.peer, part.client);
    }
}

/// All nodes have been added up.
pub fn finish(consumer: &mut v1::Consumer) {
    consumer.topics.sort_unstable();
    consumer.topics.dedup();
    consumer.topics_cut |= consumer.topics.len() > ConsumerFigures::TOPICS_MAX;
    consumer.topics.truncate(ConsumerFigures::TOPICS_MAX);
    let ended = consumer.acks_per_second + consumer.failures_per_second;
    consumer.failure_ratio = if ended > 0.0 { consumer.failures_per_second / ended } else { 0.0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_know_of_a_consumer_is_added_up_and_the_last_sight_counts() {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let part = |topic: &str, seen, acks, failures| v1::Consumer {
            topics: vec![topic.to_owned()],
            leased_count: 2,
            oldest_lease_at: at(seen),
            acks_per_second: acks,
            failures_per_second: failures,
            last_seen_at: at(seen),
            peer: format!("host:{seen}"),
            ..v1::Consumer::default()
        };
        let mut sum = part("a", 5, 3.0, 1.0);
        add(&mut sum, part("b", 9, 3.0, 1.0));
        add(&mut sum, v1::Consumer { last_seen_at: None, ..part("a", 3, 0.0, 0.0) });
        finish(&mut sum);
        assert_eq!((sum.topics, sum.leased_count), (vec!["a".to_owned(), "b".to_owned()], 6));
        assert_eq!((sum.oldest_lease_at, sum.last_seen_at, sum.peer.as_str()), (at(3), at(9), "host:9"));
        assert_eq!((sum.acks_per_second, sum.failure_ratio), (6.0, 0.25));
    }
}
