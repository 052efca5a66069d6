//! How figures were in the last minutes, up to a day: of all shards that this node owns together, of each of
//! them, of namespaces, and of the busiest topics. It is in memory alone. Long history is the business of who
//! reads the metrics.

mod latest;
mod recent;
mod ring;
mod rings;
mod sampler;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use forebay_engine::{Engine, Latencies, ShardFigures, TopicFigures};
use forebay_proto::{peer, time::to_duration, v1};
use forebay_types::{Clock, Namespace, ShardId, Timestamp, TopicName};

pub use self::{
    latest::Latest,
    recent::{RECENT_STEP, RECENT_STEPS, RECENT_TOPICS_MAX},
};
use self::{
    ring::{Look, Ring},
    rings::{KeyedLines, Lines},
    sampler::{Sample, Sampler},
};

/// Series of a namespace and of the cluster: those of [`v1::HistorySeries`], in its order from 1 on.
pub const SERIES: usize = 16;
/// Series of a topic, by their places among all: what happens, what is ready, and how long that takes.
const TOPIC_SERIES: [usize; 10] = [0, 1, 2, 3, 4, AGE, TOOK, TOOK + 1, TOOK + 2, TOOK + 3];
/// How long the oldest ready item has waited.
const AGE: usize = 5;
/// The first of four percentiles.
const TOOK: usize = 12;
/// Series of a shard: the first ones.
pub(crate) const SHARD_SERIES: usize = 10;
/// Namespaces that have lines.
const NAMESPACES_MAX: usize = 200;
/// Topics that have lines: the busiest ones.
const TOPICS_MAX: usize = 1_000;
/// Shards that have lines.
const SHARDS_MAX: usize = 256;
/// Seconds of the steps that are kept of a namespace, and for how many steps.
pub const STEPS: [(u64, usize); 3] = [(1, 300), (10, 360), (300, 288)];
/// The same of a topic, and of a shard.
pub const TOPIC_STEPS: [(u64, usize); 2] = [(10, 60), (300, 288)];

/// History of a node's figures.
#[derive(Clone, Default)]
pub struct History {
    /// Held for as long as it takes to copy, never while anything is awaited.
    kept: Arc<Mutex<HistoryLines>>,
    /// Figures that were seen last.
    latest: Arc<Mutex<Arc<Latest>>>,
}

/// All lines.
struct HistoryLines {
    /// Of all shards of this node.
    cluster: Lines<SERIES>,
    /// By namespace.
    namespaces: KeyedLines<Namespace, SERIES>,
    /// By topic.
    topics: KeyedLines<TopicName, { TOPIC_SERIES.len() }>,
    /// By shard.
    shards: KeyedLines<ShardId, SHARD_SERIES>,
    /// The last look did not see all topics.
    cut: bool,
    /// How many seconds lay between the last look and the one before, if that was so on purpose.
    every: u64,
}

impl Default for HistoryLines {
    fn default() -> Self {
        Self {
            cluster: Lines::new(&STEPS),
            namespaces: KeyedLines::new(NAMESPACES_MAX, &STEPS),
            topics: KeyedLines::new(TOPICS_MAX, &TOPIC_STEPS),
            shards: KeyedLines::new(SHARDS_MAX, &TOPIC_STEPS),
            cut: false,
            every: 1,
        }
    }
}

/// How a topic is at one moment.
fn of_topic(topic: &TopicFigures, seconds: u64) -> [f64; SERIES] {
    let mut values = [0.0; SERIES];
    values[..TOOK].copy_from_slice(&[
        topic.rates.enqueued,
        topic.rates.delivered,
        topic.rates.acked,
        topic.rates.failed,
        topic.ready as f64,
        age(topic.oldest_ready_at, seconds),
        topic.rates.dead_lettered,
        topic.leased as f64,
        topic.scheduled as f64,
        topic.dead as f64,
        topic.waiting as f64,
        1.0,
    ]);
    if let Some(took) = &topic.latencies {
        values[TOOK..].copy_from_slice(&percentiles(took));
    }
    values
}

/// How long half of what happened took, and 99 of 100: until it was delivered, and until it was acked. 0:
/// nothing happened.
fn percentiles(Latencies { waits, handlings }: &Latencies) -> [f64; SERIES - TOOK] {
    [(waits, 0.5), (waits, 0.99), (handlings, 0.5), (handlings, 0.99)]
        .map(|(of, part)| of.percentile(part).map_or(0.0, |length| length.as_secs_f64()))
}

/// Of several parts the greatest counts, and not their sum.
pub const fn is_greatest(series: usize) -> bool {
    series == AGE || series >= TOOK
}

/// How topics are at one moment, added up.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// All but how long it took.
    values: [f64; SERIES],
    /// How long it took.
    took: Latencies,
}

impl Sum {
    fn add(&mut self, topic: &TopicFigures, values: &[f64; SERIES]) {
        for (series, (sum, value)) in self.values.iter_mut().zip(values).enumerate() {
            *sum = if is_greatest(series) { sum.max(*value) } else { *sum + value };
        }
        if let Some(took) = &topic.latencies {
            self.took += took;
        }
    }

    fn values(&self) -> [f64; SERIES] {
        let mut values = self.values;
        values[TOOK..].copy_from_slice(&percentiles(&self.took));
        values
    }
}

fn of_shard(shard: &ShardFigures, seconds: u64) -> [f64; SHARD_SERIES] {
    [
        shard.rates.enqueued,
        shard.rates.delivered,
        shard.rates.acked,
        shard.rates.failed,
        shard.ready as f64,
        age(shard.oldest_ready_at, seconds),
        shard.rates.dead_lettered,
        shard.leased as f64,
        shard.scheduled as f64,
        shard.dead as f64,
    ]
}

/// For how many seconds something has waited. 0: nothing does.
fn age(since: Option<Timestamp>, seconds: u64) -> f64 {
    since.map_or(0.0, |at| (seconds as f64 - at.as_micros() as f64 / 1e6).max(0.0))
}

impl History {
    /// Looks at the node's topics until its task ends.
    pub async fn follow(self, engine: Engine, clock: Arc<dyn Clock>) {
        let mut sampler = Sampler::new();
        loop {
            let seen = sampler.next(&engine).await;
            let latest = seen.as_ref().map(|seen| Latest::of(&seen.topics)).unwrap_or_default();
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(latest);
            let Some(seen) = seen else { continue };
            let seconds = clock.wall().as_micros() / 1_000_000;
            self.add(u64::try_from(seconds).unwrap_or(0), &seen);
        }
    }

    /// Figures that were seen last: none, while the node owns no shard.
    pub fn latest(&self) -> Arc<Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers with what it remembers of the steps that are asked for.
    pub fn answer(&self, request: &peer::GetHistoryRequest) -> v1::GetHistoryResponse {
        let peer::GetHistoryRequest { namespace, topic, step, from, until, shard } = request;
        let step = u64::from(*step);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match (namespace.as_str(), topic.as_str(), shard) {
            (_, _, Some(shard)) => lines(kept.shards.ring(&ShardId(*shard), step), first(), *from, *until),
            ("-", _, None) => lines(kept.cluster.ring(step), first(), *from, *until),
            (namespace, "", None) => {
                lines(kept.namespaces.ring(&namespace.into(), step), first(), *from, *until)
            }
            (namespace, topic, None) => {
                lines(kept.topics.ring(&TopicName::new(namespace, topic), step), TOPIC_SERIES, *from, *until)
            }
        };
        let (from, lines) = found.unzip();
        let at = |from: u64| i64::try_from(from.saturating_mul(step)).unwrap_or(i64::MAX);
        v1::GetHistoryResponse {
            begins_at: from.map(|from| prost_types::Timestamp { seconds: at(from), nanos: 0 }),
            lines: lines.unwrap_or_default(),
            topics_cut: kept.cut,
            looked_every: Some(to_duration(Duration::from_secs(kept.every))),
            ..v1::GetHistoryResponse::default()
        }
    }

    /// Adds what was seen.
    fn add(&self, seconds: u64, seen: &Sample) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.add(seconds, seen);
    }
}

impl HistoryLines {
    fn add(&mut self, seconds: u64, Sample { topics, shards, cut, holds }: &Sample) {
        let at = Look { seconds, holds: *holds };
        (self.cut, self.every) = (*cut, 1 + holds);
        let mut cluster = Sum::default();
        let mut namespaces: Vec<(Namespace, [f64; SERIES])> = Vec::new();
        let mut busy = Vec::with_capacity(topics.len());
        // They come by namespace and name.
        for of_one in topics.chunk_by(|one, other| one.name.namespace == other.name.namespace) {
            let mut namespace = Sum::default();
            for topic in of_one {
                let values = of_topic(topic, seconds);
                cluster.add(topic, &values);
                namespace.add(topic, &values);
                busy.push((&topic.name, TOPIC_SERIES.map(|series| values[series])));
            }
            namespaces.extend(of_one.first().map(|topic| (topic.name.namespace.clone(), namespace.values())));
        }
        self.cluster.add(at, cluster.values());
        self.namespaces.add(at, namespaces.iter().map(|(name, values)| (name, *values)));
        self.topics.add(at, busy.into_iter());
        self.shards.add(at, shards.iter().map(|(id, shard)| (id, of_shard(shard, seconds))));
    }
}

/// The points of a ring as lines.
fn lines<const N: usize>(
    ring: Option<&Ring<N>>,
    series: [usize; N],
    from: u64,
    until: u64,
) -> Option<(u64, Vec<v1::HistoryLine>)> {
    let (first, points) = ring?.of(from, until);
    if points.is_empty() {
        return None;
    }
    let line = |(at, series): (usize, usize)| v1::HistoryLine {
        series: i32::try_from(series + 1).unwrap_or_default(),
        points: points.iter().map(|point| f64::from(point[at])).collect(),
    };
    Some((first, series.into_iter().enumerate().map(line).collect()))
}

/// The first series.
fn first<const N: usize>() -> [usize; N] {
    std::array::from_fn(|series| series)
}

#[cfg(test)]
mod tests {
    use forebay_engine::{OwnMetrics, Rates};

    use super::*;

    const DEAD_LETTERED: usize = 6;

    pub fn seen(topics: Vec<TopicFigures>) -> Sample {
        Sample { topics, shards: std::collections::BTreeMap::new(), cut: false, holds: 0 }
    }

    pub fn topic(namespace: &str, name: &str, ready: u64, dead_lettered: f64) -> TopicFigures {
        TopicFigures {
            name: TopicName::new(namespace, name),
            ready,
            leased: 1,
            scheduled: 0,
            dead: 0,
            oldest_ready_at: Some(Timestamp::from_micros(90_000_000)),
            next_due_at: None,
            waiting: 0,
            counted: None,
            rates: Rates { enqueued: 2.0, dead_lettered, ..Rates::default() },
            latencies: None,
            last_delivery_at: None,
            last_ack_at: None,
            paused: [false; 2],
            reported: OwnMetrics::default(),
        }
    }

    fn line(history: &History, [namespace, topic]: [&str; 2], step: u32, series: usize) -> Vec<f64> {
        let (namespace, topic) = (namespace.to_owned(), topic.to_owned());
        let request = peer::GetHistoryRequest { namespace, topic, step, from: 0, until: 103, shard: None };
        let answer = history.answer(&request);
        let found = answer.lines.iter().find(|line| line.series == series as i32 + 1);
        found.map(|line| line.points.clone()).unwrap_or_default()
    }

    #[test]
    fn percentiles_of_a_namespace_are_those_of_all_its_items() {
        let history = History::default();
        let waited = |name: &str, seconds: u64, items: usize| {
            let mut latencies = Box::<Latencies>::default();
            (0..items).for_each(|_| latencies.waits.record(Duration::from_secs(seconds)));
            TopicFigures { latencies: Some(latencies), ..topic("a", name, 1, 0.0) }
        };
        let topics = vec![topic("a", "idle", 5, 0.0), waited("slow", 600, 1), waited("swift", 1, 200)];
        history.add(100, &seen(topics));
        let p99 = |of: [&str; 2], step| line(&history, of, step, TOOK + 1)[0];
        assert!(p99(["a", "slow"], 10) > 400.0 && p99(["a", "swift"], 10) < 2.0);
        assert!(p99(["a", ""], 1) < 2.0 && p99(["-", ""], 1) < 2.0, "one of 201 was slow");
        assert_eq!(p99(["a", "idle"], 10), 0.0);
        assert_eq!(line(&history, ["a", ""], 1, TOOK + 2)[0], 0.0, "none was acked");
    }

    #[test]
    fn topics_are_added_up_for_their_namespaces_and_for_the_cluster() {
        let history = History::default();
        for seconds in 100..103 {
            let topics = vec![topic("a", "t", 5, 3.0), topic("a", "u", 7, 0.0), topic("b", "t", 1, 1.0)];
            history.add(seconds, &seen(topics));
        }
        assert_eq!(line(&history, ["a", "t"], 10, 4), [5.0]);
        assert_eq!(line(&history, ["a", ""], 1, 4), [12.0; 3]);
        assert_eq!(line(&history, ["-", ""], 1, 4), [13.0; 3]);
        assert_eq!(line(&history, ["-", ""], 1, AGE), [10.0, 11.0, 12.0], "the oldest one, not a sum");
        assert_eq!(line(&history, ["-", ""], 1, 0), [6.0; 3]);
        assert_eq!(line(&history, ["-", ""], 1, DEAD_LETTERED), [4.0; 3]);
        assert_eq!(line(&history, ["a", ""], 1, DEAD_LETTERED), [3.0; 3]);
        assert_eq!(line(&history, ["-", ""], 1, 11), [3.0; 3]);
        assert!(line(&history, ["c", ""], 1, 0).is_empty() && line(&history, ["a", "t"], 10, 6).is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_busiest_stay() {
        let history = History::default();
        for round in 0..3 {
            let topics: Vec<_> = (0..5_000)
                .map(|number| {
                    let mut it = topic(&format!("n{:03}", number / 10), &format!("t{number:04}"), 1, 0.0);
                    it.rates.enqueued = if number >= 4_900 && round > 0 { 1_000.0 } else { 0.0 };
                    it
                })
                .collect();
            history.add(100 + 10 * round, &seen(topics));
        }
        let kept = history.kept.lock().unwrap();
        assert_eq!((kept.namespaces.len(), kept.topics.len()), (NAMESPACES_MAX, TOPICS_MAX));
        assert!(kept.topics.ring(&TopicName::new("n499", "t4999"), 10).is_some(), "a busy one came late");
        assert!(kept.namespaces.ring(&"n499".into(), 1).is_some());
    }

    #[test]
    fn shards_have_lines_and_what_was_left_out_is_told() {
        let history = History::default();
        let rates = Rates { acked: 3.0, ..Rates::default() };
        let figures = ShardFigures { ready: 5, dead: 2, rates, ..ShardFigures::default() };
        let shards = [(ShardId(7), figures)].into();
        history.add(100, &Sample { shards, cut: true, holds: 9, ..seen(Vec::new()) });
        let request = |shard| peer::GetHistoryRequest {
            namespace: "-".to_owned(),
            step: 10,
            until: 1_000_000,
            shard: Some(shard),
            ..peer::GetHistoryRequest::default()
        };
        let answer = history.answer(&request(7));
        let points: Vec<f64> = answer.lines.iter().map(|line| line.points[0]).collect();
        assert_eq!(points, [0.0, 0.0, 3.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
        assert_eq!((answer.topics_cut, answer.looked_every.unwrap().seconds), (true, 10));
        assert!(history.answer(&request(8)).lines.is_empty());
    }
}
