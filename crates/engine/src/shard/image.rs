//! What a take-over found, as the shard's memory holds it. It is made in the shard's own task, in slices:
//! with a million topics it takes a second, for which nobody shall wait.

use std::{iter::Peekable, vec};

use forebay_store::{Checkpoint, LeaseRow, ReadAhead, ShardSnapshot, TopicRow, TopicTally};
use forebay_types::{Monotonic, TopicId};
use rustc_hash::FxHashSet;

use super::{
    leases::Leases, operations::Operations, prefetches::Prefetches, tenants::Tenants, topics::TopicTable,
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
    /// What each tenant has leased.
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

/// The places of topics that a load is expected to bring.
#[derive(Debug, Default)]
pub(crate) struct ExpectedTopics(TopicTable);

impl ExpectedTopics {
    /// Makes the places of all topics that were read, a slice at a time.
    pub async fn of(read: &ReadAhead) -> Self {
        let mut expected = Self::default();
        for (count, row) in read.topics().enumerate() {
            expected.0.expect(row);
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
    /// Topics that are in it, by number.
    loaded: Vec<TopicId>,
    /// What was counted of their items, in the order of the topics.
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
        let mut image =
            ShardImage { topics: expected.0, checkpoints, generations, operations, ..ShardImage::default() };
        image.topics.deltas_from = deltas_from;
        image.topics.dormant_dead = dormant_dead;
        if !topics.is_empty() {
            image.topics.tally_load.begin();
        }
        let (topics, unfolded) = (topics.into_iter(), unfolded.into_iter().collect());
        let tallies = tallies.into_iter().peekable();
        let loaded = Vec::with_capacity(topics.len());
        Self { image, topics, loaded, tallies, unfolded, leases: leases.into_iter(), at }
    }

    /// Goes on for a slice. Returns whether anything is left.
    pub fn step(&mut self) -> bool {
        // A lease row's tenants are found by its topics: those come first.
        for row in self.topics.by_ref().take(SLICE) {
            self.image.prefetches.add_head(&row);
            let unfolded = self.unfolded.contains(&row.id);
            let tally = self.tallies.next_if(|(of, _)| *of == row.id).map(|(_, tally)| tally);
            self.image.topics.add_loaded(&row, tally, unfolded, self.at);
            self.loaded.push(row.id);
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
        self.topics.len() > 0 || self.leases.len() > 0
    }

    /// The image. All slices are in it.
    pub fn finish(mut self) -> ShardImage {
        self.image.topics.end_load(&self.loaded);
        self.image
    }
}
