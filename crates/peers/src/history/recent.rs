//! How many items were ready in the last minutes, of several topics at once: one line of each, for lists.

use std::sync::PoisonError;

use forebay_proto::peer;
use forebay_types::TopicName;

use super::{History, TOPIC_STEPS};

/// Seconds of a step: the shortest that is kept of a topic.
pub const RECENT_STEP: u64 = TOPIC_STEPS[0].0;
/// Steps of a line.
pub const RECENT_STEPS: u64 = 30;
/// Topics of a page that asks for lines.
pub const RECENT_TOPICS_MAX: usize = 100;
/// Topics that are looked up at once: a page in the order of each of the five figures has so many.
const ASKED_MAX: usize = 5 * RECENT_TOPICS_MAX;
/// The place of the ready items among the series of a topic.
const READY: usize = 4;

impl History {
    /// Points that it remembers of the first topics of a request. Nothing else is looked at.
    pub fn recent(&self, request: peer::ListRecentRequest) -> peer::ListRecentResponse {
        let peer::ListRecentRequest { topics, from, until } = request;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |(place, name): (usize, peer::TopicName)| {
            let ring = kept.topics.ring(&TopicName::new(name.namespace, name.topic), RECENT_STEP)?;
            let (from, points) = ring.of(from, until);
            let points: Vec<f64> = points.iter().map(|point| f64::from(point[READY])).collect();
            let topic = u32::try_from(place).ok()?;
            (!points.is_empty()).then_some(peer::Recent { topic, from, points })
        };
        let asked = topics.into_iter().take(ASKED_MAX).enumerate();
        peer::ListRecentResponse { topics: asked.filter_map(line).collect() }
    }
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::HistorySeries;

    use super::{
        super::{TOPIC_SERIES, TOPICS_MAX, tests},
        *,
    };

    #[test]
    fn topics_with_lines_are_told_by_their_places() {
        assert_eq!(TOPIC_SERIES[READY] + 1, HistorySeries::Ready as usize);
        let history = History::default();
        for (seconds, ready) in [(100, 5), (105, 7), (110, 9)] {
            history.add(seconds, &tests::seen(vec![tests::topic("a", "t", ready, 0.0)]));
        }
        let name = |topic: &str| peer::TopicName { namespace: "a".to_owned(), topic: topic.to_owned() };
        let ask = |topics| history.recent(peer::ListRecentRequest { topics, from: 0, until: 12 });
        let line = peer::Recent { topic: 1, from: 10, points: vec![6.0, 9.0] };
        assert_eq!(ask(vec![name("none"), name("t")]).topics, [line]);
        let late = [vec![name("none"); ASKED_MAX], vec![name("t")]].concat();
        assert!(ask(late).topics.is_empty(), "no more are looked up");
        assert!(ASKED_MAX < TOPICS_MAX && RECENT_STEPS <= TOPIC_STEPS[0].1 as u64);
    }
}
