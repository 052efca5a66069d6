//! The topics with the greatest figures, of any number of them: no more are held than are asked for.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashSet},
};

use forebay_proto::v1;

/// By which figure topics are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Ready items.
    Ready,
    /// Leased items.
    Leased,
    /// Scheduled items.
    Scheduled,
    /// Dead letters.
    Dead,
    /// The age of the oldest head.
    Oldest,
}

/// The greatest ones of those that were added, by each of some figures.
pub(crate) struct Greatest(Vec<ByFigure>);

/// The greatest ones by one figure.
struct ByFigure {
    /// The figure.
    figure: Figure,
    /// At most so many.
    most: usize,
    /// The least of them is at the top, where it gives way.
    heap: BinaryHeap<RankedTopic>,
}

impl Greatest {
    /// At most so many by each figure, of none so far.
    pub fn new(figures: &[Figure], most: usize) -> Self {
        Self(
            figures
                .iter()
                .map(|figure| ByFigure { figure: *figure, most, heap: BinaryHeap::new() })
                .collect(),
        )
    }

    /// One more topic. Where it is none of the greatest, that is seen by one comparison a figure.
    pub fn add(&mut self, topic: &v1::Topic) {
        self.0.iter_mut().for_each(|by_figure| by_figure.add(topic));
    }

    /// Topics with the greatest first figure first, and by name where these are equal. Others follow that are
    /// among the greatest by another figure alone.
    pub(crate) fn into_topics(self) -> Vec<v1::Topic> {
        let mut named = HashSet::new();
        let ranked = self.0.into_iter().flat_map(|by_figure| by_figure.heap.into_sorted_vec());
        let is_new = |topic: &v1::Topic| named.insert((topic.namespace.clone(), topic.topic.clone()));
        ranked.map(|ranked| ranked.topic).filter(is_new).collect()
    }
}

impl ByFigure {
    fn add(&mut self, topic: &v1::Topic) {
        let rank = rank(topic, self.figure);
        if self.heap.len() < self.most {
            self.heap.push(RankedTopic { rank, topic: topic.clone() });
        } else if let Some(mut least) = self.heap.peek_mut()
            && least.comes_after(rank, topic)
        {
            *least = RankedTopic { rank, topic: topic.clone() };
        }
    }
}

/// A topic at its place: a greater figure comes first.
struct RankedTopic {
    /// Smaller for a greater figure.
    rank: (i64, i32),
    /// The topic.
    topic: v1::Topic,
}

impl RankedTopic {
    /// Whether its place is behind that of a topic.
    fn comes_after(&self, rank: (i64, i32), topic: &v1::Topic) -> bool {
        self.place() > (rank, &topic.namespace, &topic.topic)
    }

    fn place(&self) -> ((i64, i32), &String, &String) {
        (self.rank, &self.topic.namespace, &self.topic.topic)
    }
}

impl Ord for RankedTopic {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for RankedTopic {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedTopic {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RankedTopic {}

/// Smaller for a greater figure.
fn rank(topic: &v1::Topic, figure: Figure) -> (i64, i32) {
    let count = |count: u64| (-i64::try_from(count).unwrap_or(i64::MAX), 0);
    match figure {
        Figure::Ready => count(topic.ready_count),
        Figure::Leased => count(topic.leased_count),
        Figure::Scheduled => count(topic.scheduled_count),
        Figure::Dead => count(topic.dead_count),
        Figure::Oldest => topic.oldest_ready_at.map_or((i64::MAX, 0), |at| (at.seconds, at.nanos)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Topics with so many ready items.
    fn greatest(most: usize, ready: &[(&str, u64)]) -> Vec<(String, u64)> {
        let mut greatest = Greatest::new(&[Figure::Ready], most);
        for (name, ready_count) in ready {
            let (namespace, topic) = name.split_once('/').unwrap();
            let (namespace, topic) = (namespace.to_owned(), topic.to_owned());
            greatest.add(&v1::Topic { namespace, topic, ready_count: *ready_count, ..v1::Topic::default() });
        }
        let named = |it: v1::Topic| (format!("{}/{}", it.namespace, it.topic), it.ready_count);
        greatest.into_topics().into_iter().map(named).collect()
    }

    fn named(topics: &[(&str, u64)]) -> Vec<(String, u64)> {
        topics.iter().map(|(name, ready)| ((*name).to_owned(), *ready)).collect()
    }

    #[test]
    fn the_greatest_come_first_and_equal_ones_by_name() {
        let topics = [("b/x", 1), ("a/y", 3), ("a/x", 3), ("a/z", 0), ("b/y", u64::MAX), ("c/x", 2)];
        let sorted = [("b/y", u64::MAX), ("a/x", 3), ("a/y", 3), ("c/x", 2), ("b/x", 1), ("a/z", 0)];
        for most in 0..=7 {
            assert_eq!(greatest(most, &topics), named(&sorted[..most.min(6)]), "{most}");
        }
    }

    #[test]
    fn it_is_what_sorting_all_of_them_gives() {
        let topics: Vec<(String, u64)> = (0..5_000).map(|n| (format!("ns/{n}"), n * 7_919 % 501)).collect();
        let mut sorted = topics.clone();
        sorted.sort_by(|(a, x), (b, y)| (y, a).cmp(&(x, b)));
        sorted.truncate(100);
        let topics: Vec<(&str, u64)> = topics.iter().map(|(name, ready)| (name.as_str(), *ready)).collect();
        assert_eq!(greatest(100, &topics), sorted);
    }

    #[test]
    fn the_oldest_head_comes_first_and_none_last() {
        let mut greatest = Greatest::new(&[Figure::Oldest], 2);
        for seconds in [None, Some(9), Some(3), Some(5)] {
            let at = seconds.map(|seconds| prost_types::Timestamp { seconds, nanos: 0 });
            let topic = seconds.unwrap_or_default().to_string();
            greatest.add(&v1::Topic { topic, oldest_ready_at: at, ..v1::Topic::default() });
        }
        let first: Vec<_> =
            greatest.into_topics().iter().map(|it| it.oldest_ready_at.unwrap().seconds).collect();
        assert_eq!(first, [3, 5]);
    }

    #[test]
    fn those_by_several_figures_are_there_once() {
        let mut greatest = Greatest::new(&[Figure::Ready, Figure::Dead], 2);
        for (name, ready_count, dead_count) in [("a", 1, 9), ("b", 5, 0), ("c", 4, 8), ("d", 3, 7)] {
            let topic = name.to_owned();
            greatest.add(&v1::Topic { topic, ready_count, dead_count, ..v1::Topic::default() });
        }
        let names: Vec<_> = greatest.into_topics().into_iter().map(|it| it.topic).collect();
        assert_eq!(names, ["b", "c", "a"]);
    }
}
