//! Tallies of forgotten topics, and whether all that was ever counted of a namespace is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use forebay_store::{Batch, NamespaceTally, Tally};
use forebay_types::{Namespace, TopicId};

use super::{change::AppliedBatch, tables::Tables, tallies::Deeds};

/// A run has fewer namespaces, so that none has to give way to others.
const NAMESPACES_FEW: usize = 100;

/// Dead letters that a batch removes, by namespace and topic.
pub(super) type RemovedDormant = Vec<(Namespace, TopicId, i64)>;

impl Tables {
    /// Returns the tallies of forgotten topics, of the first namespaces behind a name.
    pub fn namespace_tallies_behind(&self, after: &str, limit: usize) -> Vec<NamespaceTally> {
        let behind = (Bound::Excluded(Namespace::from(after)), Bound::Unbounded);
        self.namespace_tallies.range(behind).take(limit).map(|(_, row)| row.clone()).collect()
    }

    /// Dead letters of topics that are forgotten, which a batch removes before it is applied.
    pub(super) fn removed_dormant(&self, batch: &Batch, deeds: &BTreeMap<TopicId, Deeds>) -> RemovedDormant {
        let removed = batch.dormant_losses.iter().filter_map(|(topic, _)| {
            let name = &self.topics.get(topic)?.name;
            Some((name.namespace.clone(), *topic, deeds.get(topic)?.dead_gone()))
        });
        removed.collect()
    }

    /// Adds what a batch counts to what all have counted, and writes what forgotten topics counted.
    pub(super) fn forget_topics(
        &mut self,
        batch: &Batch,
        removed_dormant: &RemovedDormant,
        done: &mut AppliedBatch,
    ) {
        for (namespace, topic, count) in removed_dormant {
            // The tally of a namespace before it was deleted is gone, and so are later losses of that.
            let row = self.namespace_tallies.get(namespace).filter(|row| *topic > row.deleted_through);
            if row.is_some_and(|row| row.tally.is_some()) {
                self.totals.entry(namespace.clone()).or_default().removed += count;
            }
        }
        for (topic, delta) in &batch.tallies {
            if let Some(entry) = self.topics.get(topic) {
                *self.totals.entry(entry.name.namespace.clone()).or_default() += *delta;
            }
        }
        let mut anew = BTreeSet::new();
        for row in &batch.namespace_tallies {
            let before = self.namespace_tallies.insert(row.namespace.clone(), row.clone());
            let deleted = before.map_or(TopicId(0), |before| before.deleted_through);
            if row.deleted_through != deleted {
                anew.insert(row.namespace.clone());
            }
        }
        for namespace in &batch.namespace_tally_deletes {
            let gone = self.namespace_tallies.remove(namespace);
            let few = self.namespace_tallies.len() < NAMESPACES_FEW;
            if self.strict && few && gone.is_some_and(|gone| gone.deleted_through == TopicId(0)) {
                done.violation("CONSERVATION", format!("what {namespace} counted was deleted"));
            }
            anew.insert(namespace.clone());
        }
        // A namespace that was deleted counts anew: the rest of its topics, and what comes.
        for namespace in anew {
            let sum = self.sums(&[&namespace]).remove(&namespace).unwrap_or_default();
            self.totals.insert(namespace, sum);
        }
    }

    /// Whatever is forgotten, nothing is lost of what all batches have counted.
    pub(super) fn check_totals(&self, batch: &Batch, done: &mut AppliedBatch) {
        let forgets = batch.folds.iter().any(|(.., tally)| tally.is_none());
        let changes = !batch.namespace_tallies.is_empty() || !batch.drop_topics.is_empty() || forgets;
        if !self.strict || !changes {
            return;
        }
        let names: Vec<&Namespace> = self.totals.keys().collect();
        let sums = self.sums(&names);
        for (namespace, total) in &self.totals {
            let sum = sums.get(namespace).copied().unwrap_or_default();
            if sum != *total {
                let what = format!("{namespace} counted {total:?}, and has {sum:?}");
                done.violation("CONSERVATION", what);
            }
        }
    }

    /// Sums up the tallies of the topics of namespaces, forgotten ones included.
    fn sums(&self, namespaces: &[&Namespace]) -> BTreeMap<Namespace, Tally> {
        let rows = self.namespace_tallies.values().filter_map(|row| Some((&row.namespace, row.tally?)));
        let topics = self.topics.values().filter_map(|topic| Some((&topic.name.namespace, topic.counted?)));
        let mut sums: BTreeMap<Namespace, Tally> = BTreeMap::new();
        for (namespace, counted) in rows.chain(topics).filter(|(of, _)| namespaces.contains(of)) {
            *sums.entry(namespace.clone()).or_default() += counted.tally;
        }
        sums
    }
}
