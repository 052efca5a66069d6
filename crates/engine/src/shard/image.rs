//! The image of a shard's memory that a take-over makes. It is made in the shard's own task, in slices: with
//! a million topics it takes a second, for which nobody shall wait.

use std::{iter::Peekable, vec};

use forebay_store::{Checkpoint, LeaseRow, ReadAhead, ShardSnapshot, TopicRow, TopicTally};
use forebay_types::{Monotonic, TopicId};
use rustc_hash::FxHashSet;

use super::{
    contents::{
        leases::{log::Leases, tenants::Tenants},
        ready::prefetches::Prefetches,
        topics::table::TopicTable,
    },
    upkeep::operation::operations::Operations,
};

/// Topics, or lease rows, of one slice.
const SLICE: usize = 500;

/// A shard's memory as of its take-over.
#[derive(Debug, Default)]
pub(crate) struct ShardImage {
    /// Its topics.
    pub(super) topics: TopicTable,
    /// Its open deliveries.
    pub(super) leases: Leases,
    /// The leases of each tenant.
    pub(super) tenants: Tenants,
    /// The heads to be read.
    pub(super) prefetches: Prefetches,
    /// Where the sweeps continue.
    pub(super) checkpoints: Vec<Checkpoint>,
    /// The generations of the dedupe table.
    pub(super) generations: Vec<u64>,
    /// The shard's parts of operations.
    pub(super) operations: Operations,
}

/// Topics that a load is expected to bring: their places, and their numbers in order.
#[derive(Debug, Default)]
pub(crate) struct ExpectedTopics {
    /// The places.
    table: TopicTable,
    /// The numbers.
    ids: Vec<TopicId>,
}

impl ExpectedTopics {
    /// Makes the places of all topics that were read, a slice at a time.
    pub async fn of(read: &ReadAhead) -> Self {
        let mut expected = Self::default();
        for (count, row) in read.topics().enumerate() {
            expected.table.expect(row);
            expected.ids.push(row.id);
            if count % SLICE == 0 {
                // Others of this thread have their turn.
                tokio::task::yield_now().await;
            }
        }
        expected
    }
}

/// An image under construction.
#[derive(Debug)]
pub(crate) struct ImageBuilder {
    /// The image.
    image: ShardImage,
    /// Topics that are not in it yet.
    topics: vec::IntoIter<TopicRow>,
    /// Topics that have places and were not met yet.
    expected: Peekable<vec::IntoIter<TopicId>>,
    /// The tallies of their items, in the order of the topics.
    tallies: Peekable<vec::IntoIter<(TopicId, TopicTally)>>,
    /// Topics whose counts are to be folded.
    unfolded: FxHashSet<TopicId>,
    /// Lease rows that are not in it yet.
    leases: vec::IntoIter<LeaseRow>,
    /// When the shard was taken over.
    at: Monotonic,
}

impl ImageBuilder {
    /// Of what was loaded, and of topics that were expected. The shard is taken over at `at`.
    pub fn new(snapshot: ShardSnapshot, expected: ExpectedTopics, at: Monotonic) -> Self {
        let ShardSnapshot { topics, dormant_dead, tallies, unfolded, deltas_from, leases, .. } = snapshot;
        let ShardSnapshot { checkpoints, generations, operations, .. } = snapshot;
        let operations = Operations::load(operations, snapshot.unreadable_operations);
        let mut image = ShardImage {
            topics: expected.table,
            checkpoints,
            generations,
            operations,
            ..ShardImage::default()
        };
        image.topics.deltas_from = deltas_from;
        image.topics.dormant_dead = dormant_dead;
        image.topics.tally_load.begin(!topics.is_empty());
        let (topics, unfolded) = (topics.into_iter(), unfolded.into_iter().collect());
        let tallies = tallies.into_iter().peekable();
        let expected = expected.ids.into_iter().peekable();
        Self { image, topics, expected, tallies, unfolded, leases: leases.into_iter(), at }
    }

    /// Goes on for a slice. Returns whether anything is left.
    pub fn step(&mut self) -> bool {
        // A lease row's tenants are found by its topics: those come first.
        for row in self.topics.by_ref().take(SLICE) {
            // An expected topic that was not met is gone. Its name may be another topic's by now, which has a
            // higher number.
            while let Some(gone) = self.expected.next_if(|id| *id < row.id) {
                self.image.topics.remove(gone);
            }
            self.expected.next_if_eq(&row.id);
            self.image.prefetches.add_head(&row);
            let unfolded = self.unfolded.contains(&row.id);
            let tally = self.tallies.next_if(|(of, _)| *of == row.id).map(|(_, tally)| tally);
            self.image.topics.add_loaded(&row, tally, unfolded, self.at);
        }
        if self.topics.len() == 0 {
            for gone in self.expected.by_ref().take(SLICE) {
                self.image.topics.remove(gone);
            }
        }
        let mut deliveries = 0;
        while self.topics.len() == 0
            && deliveries < SLICE
            && let Some(row) = self.leases.next()
        {
            deliveries += row.entries.len();
            let ShardImage { topics, leases, tenants, .. } = &mut self.image;
            let open = row.entries.iter().zip(&row.open).filter(|(_, open)| **open);
            for topic in open.filter_map(|(entry, _)| topics.get(entry.topic)) {
                tenants.leased(&topic.name.namespace, 1);
            }
            leases.insert(row);
        }
        self.topics.len() > 0 || self.expected.len() > 0 || self.leases.len() > 0
    }

    /// The image. All slices are in it.
    pub fn finish(self) -> ShardImage {
        self.image
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_store::TopicCounts;
    use forebay_types::TopicName;

    use super::*;

    const AT: Monotonic = Monotonic::from_start(Duration::ZERO);

    fn row(id: u32, ready: i64) -> TopicRow {
        let counts = TopicCounts { ready, ..TopicCounts::default() };
        TopicRow { id: TopicId(id), name: TopicName::new("ns", format!("t{id}")), counts }
    }

    /// The topics of an image, where these were read ahead and those were loaded.
    async fn topics(ahead: Vec<TopicRow>, topics: Vec<TopicRow>, unfolded: Vec<TopicId>) -> TopicTable {
        let expected = ExpectedTopics::of(&ReadAhead::hints(ahead)).await;
        assert_eq!(expected.table.sums(), TopicCounts::default(), "they count once they are loaded");
        let snapshot = ShardSnapshot { topics, unfolded, ..ShardSnapshot::default() };
        let mut image = ImageBuilder::new(snapshot, expected, AT);
        while image.step() {}
        let topics = image.finish().topics;
        assert_eq!(topics.check(), Ok(()));
        topics
    }

    #[tokio::test]
    async fn what_was_expected_counts_as_loaded_and_is_forgotten_if_it_is_gone() {
        let ahead = vec![row(1, 5), row(2, 5), row(3, 0), row(9, 1)];
        let table = topics(ahead, vec![row(1, 7), row(3, 0), row(4, 2)], vec![TopicId(1)]).await;
        assert_eq!((table.len(), table.sums().ready), (3, 9));
        for gone in [2, 9] {
            assert!(table.id_of(&row(gone, 0).name).is_none() && table.get(TopicId(gone)).is_none());
        }
        assert!(!table.get(TopicId(1)).unwrap().window().is_complete());
    }

    #[tokio::test]
    async fn a_topic_that_was_dropped_and_made_anew_has_its_new_number() {
        let again = TopicRow { id: TopicId(2), ..row(1, 3) };
        let table = topics(vec![row(1, 0)], vec![again.clone()], Vec::new()).await;
        assert_eq!(table.id_of(&again.name), Some(TopicId(2)));
    }

    #[tokio::test]
    async fn many_that_are_gone_are_forgotten_in_slices() {
        let ahead = (1..=1_200).map(|id| row(id, 1)).collect();
        let expected = ExpectedTopics::of(&ReadAhead::hints(ahead)).await;
        let mut image = ImageBuilder::new(ShardSnapshot::default(), expected, AT);
        let steps = std::iter::from_fn(|| image.step().then_some(())).count();
        assert_eq!((steps, image.finish().topics.len()), (2, 0));
    }
}
