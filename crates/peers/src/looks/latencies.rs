//! How long items waited and deliveries lasted: as nodes tell each other, and as callers see it.

use forebay_engine::{Histogram, Latencies};
use forebay_proto::{peer, time::to_duration, v1};

/// Bytes that the percentiles of a topic take at most in an answer.
pub const PERCENTILE_BYTES: usize = 64;

/// As other nodes are told.
pub fn message(latencies: &Latencies) -> peer::Latencies {
    let Latencies { waits, handlings } = latencies;
    peer::Latencies { waits: waits.counts().to_vec(), handlings: handlings.counts().to_vec() }
}

/// As another node told it.
pub fn of_message(message: &peer::Latencies) -> Box<Latencies> {
    let peer::Latencies { waits, handlings } = message;
    Box::new(Latencies { waits: Histogram::of_counts(waits), handlings: Histogram::of_counts(handlings) })
}

/// Adds what another node has.
pub fn add(sum: &mut Option<Box<Latencies>>, part: Option<Box<Latencies>>) {
    match (sum, part) {
        (Some(sum), Some(part)) => **sum += &part,
        (sum @ None, part) => *sum = part,
        (Some(_), None) => {}
    }
}

/// Tells callers.
pub fn tell(topic: &mut v1::Topic, latencies: &Latencies) {
    let Latencies { waits, handlings } = latencies;
    topic.wait_p50 = waits.percentile(0.5).map(to_duration);
    topic.wait_p99 = waits.percentile(0.99).map(to_duration);
    topic.handling_p50 = handlings.percentile(0.5).map(to_duration);
    topic.handling_p99 = handlings.percentile(0.99).map(to_duration);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of(waits: &[u64]) -> Box<Latencies> {
        let mut latencies = Box::<Latencies>::default();
        waits.iter().for_each(|seconds| latencies.waits.record(Duration::from_secs(*seconds)));
        latencies
    }

    #[test]
    fn what_two_nodes_counted_makes_one_percentile() {
        let mut sum = None;
        add(&mut sum, Some(of(&[1; 98])));
        add(&mut sum, None);
        add(&mut sum, Some(of_message(&message(&of(&[600; 100])))));
        let mut topic = v1::Topic::default();
        tell(&mut topic, &sum.unwrap());
        let p50 = topic.wait_p50.unwrap().seconds;
        assert!((450..=800).contains(&p50), "more than half waited for ten minutes, not {p50} s");
        assert_eq!(topic.handling_p99, None);
    }
}
