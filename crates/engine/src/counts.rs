//! Counts without counting: exact in memory, one row of changes a batch in the store, and now and then a fold of
//! old changes into the topics' own rows.

use std::collections::{BTreeMap, HashSet};

use forebay_store::{Batch, TopicCounts};
use forebay_types::{Monotonic, TopicId};

use crate::{form::InFlight, shard::Owned};

/// Batches after which a topic's counts are folded into its row.
const FOLD_AFTER: u64 = 256;
/// Topics that one batch folds; many more once the deltas pile up.
pub(crate) const FOLDS: usize = 64;
const FOLDS_BEHIND: usize = 512;

/// Writes the counts of topics that changed long ago into their rows, so that old deltas can go.
pub(crate) fn fold(
    owned: &Owned,
    batch: &mut Batch,
    deltas: &BTreeMap<TopicId, TopicCounts>,
) -> Vec<TopicId> {
    let since = |id: &TopicId| owned.topics.get(id).and_then(|topic| topic.dirty_since);
    let oldest = owned.dirty.iter().find_map(&since).unwrap_or(batch.number);
    // Topics that were loaded have `dirty_since` 0: they are folded once, without haste.
    let behind = if oldest == 0 { FOLD_AFTER } else { batch.number - oldest };
    if behind < FOLD_AFTER {
        return Vec::new();
    }
    let most = if behind < 4 * FOLD_AFTER { FOLDS } else { FOLDS_BEHIND };
    // The queue is in the order of `dirty_since`.
    let old = |id: &&TopicId| since(id).is_none_or(|since| since <= oldest + FOLD_AFTER / 2);
    let folds: Vec<TopicId> = owned.dirty.iter().take_while(old).take(most).copied().collect();
    for id in &folds {
        let Some(topic) = owned.topics.get(id) else { continue };
        if batch.drop_topics.contains(id) {
            continue;
        }
        let mut counts = topic.counts;
        if let Some(delta) = deltas.get(id) {
            counts.ready += delta.ready;
            counts.scheduled += delta.scheduled;
            counts.dead += delta.dead;
        }
        batch.count_folds.push((*id, counts));
    }
    let rest = owned.dirty.iter().skip(folds.len()).find_map(since);
    batch.deltas_before = Some(rest.unwrap_or(batch.number));
    folds
}

impl Owned {
    pub fn apply_counts(&mut self, batch: &InFlight, at: Monotonic) {
        let folded: HashSet<TopicId> = batch.folds.iter().copied().collect();
        // The folded ones stand at the head of the queue.
        self.dirty.drain(..batch.folds.len().min(self.dirty.len()));
        for id in &folded {
            if let Some(topic) = self.topics.get_mut(id) {
                topic.dirty_since = None;
            }
        }
        for (id, delta) in &batch.deltas {
            let Some(topic) = self.topics.get_mut(id) else { continue };
            topic.counts.ready += delta.ready;
            topic.counts.scheduled += delta.scheduled;
            topic.counts.dead += delta.dead;
            debug_assert!(topic.counts.ready >= 0 && topic.counts.scheduled >= 0, "{topic:?}");
            if topic.dirty_since.is_none() && !folded.contains(id) {
                topic.dirty_since = Some(batch.number);
                self.dirty.push_back(*id);
            }
            topic.idle_since = topic.is_empty().then_some(at);
            if topic.is_empty() {
                self.idle.push_back((at, *id));
            }
            self.note(*id);
        }
    }
}
