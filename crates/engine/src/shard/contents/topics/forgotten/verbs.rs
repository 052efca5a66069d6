//! Counts of topics that are forgotten, by namespace: the counts of a namespace never fall. The batch that
//! forgets a topic writes its tally into the row of its namespace.
//!
//! Names of namespaces come from callers. Namespaces without topics share [`BYTES_MAX`] in a shard. Beyond
//! that, the one that was changed longest ago goes first: it counts anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use forebay_store::NamespaceTally;
use forebay_types::{Namespace, TopicId, TopicName};

use super::rows::cost;
use crate::{
    api::LifetimeCounts,
    planted::{Bug, on},
    shard::{
        OwnedShard,
        commit::in_flight::{ForgottenChange, RemovedDormant},
        contents::topics::table::TopicTable,
    },
};

/// Bytes that namespaces without topics take at most: some 2,500 of them.
const BYTES_MAX: usize = 512 << 10;
/// Namespaces that give way in one batch.
const GIVE_WAY_MAX: usize = 512;

impl TopicTable {
    /// The changes of a batch that forgets these topics, and removes these dead letters of topics that are
    /// forgotten. No topic has a higher number than `last` so far.
    pub fn forget(
        &mut self,
        dropped: &[TopicId],
        removed: &RemovedDormant,
        last: TopicId,
        batch: u64,
    ) -> ForgottenChange {
        let deletions = std::mem::take(&mut self.forgotten.deletions);
        let new = |namespace: &Namespace, deleted_through| NamespaceTally {
            namespace: namespace.clone(),
            tally: None,
            deleted_through,
            changed_in: batch,
        };
        let anew = deletions.iter().map(|namespace| (namespace.clone(), new(namespace, last)));
        let mut rows: BTreeMap<Namespace, NamespaceTally> = anew.collect();
        let mut going: BTreeMap<Namespace, usize> = BTreeMap::new();
        for id in dropped {
            let Some(topic) = self.get(*id) else { continue };
            let namespace = &topic.name.namespace;
            *going.entry(namespace.clone()).or_default() += 1;
            let known = || self.forgotten.rows.get(namespace).cloned();
            let row = rows.entry(namespace.clone());
            let row = row.or_insert_with(|| known().unwrap_or_else(|| new(namespace, TopicId(0))));
            let counted = topic.tally.filter(|_| *id > row.deleted_through && !on(Bug::ForgottenNotCounted));
            if let Some(counted) = counted {
                match &mut row.tally {
                    Some(tally) => *tally += counted,
                    None => row.tally = Some(counted),
                }
            }
        }
        for ((namespace, id), count) in removed {
            // Where nothing is counted of what came in, nor is what goes.
            let known = || self.forgotten.rows.get(namespace).cloned();
            if !rows.contains_key(namespace) {
                rows.extend(known().map(|row| (namespace.clone(), row)));
            }
            let row = rows.get_mut(namespace).filter(|row| *id > row.deleted_through);
            if let Some(tally) = row.and_then(|row| row.tally.as_mut()) {
                tally.tally.removed += count;
            }
        }
        let mut change = ForgottenChange { deletions, ..ForgottenChange::default() };
        for (namespace, mut row) in rows {
            let topics = self.namespaces.get(&namespace).copied().unwrap_or(0);
            let left = topics.saturating_sub(going.get(&namespace).copied().unwrap_or(0));
            let known = self.forgotten.rows.get(&namespace);
            let is_new = known.is_none() && row.tally.is_none() && row.deleted_through == TopicId(0);
            if row.tally.is_none() && left == 0 {
                change.deleted.extend((!is_new).then_some(namespace));
            } else if !is_new && known != Some(&row) {
                row.changed_in = batch;
                change.written.push(row);
            }
        }
        self.give_way(&mut change);
        change
    }

    /// Namespaces without topics go, where there are too many.
    fn give_way(&self, change: &mut ForgottenChange) {
        if self.forgotten.bytes <= BYTES_MAX {
            return;
        }
        let taken: BTreeSet<&Namespace> =
            change.written.iter().map(|row| &row.namespace).chain(&change.deleted).collect();
        let is_idle = |row: &&NamespaceTally| {
            !self.namespaces.contains_key(&row.namespace) && !taken.contains(&row.namespace)
        };
        let idle = self.forgotten.rows.values().filter(is_idle);
        let mut idle: Vec<_> = idle.map(|row| (row.changed_in, row.namespace.clone())).collect();
        let mut bytes: usize = idle.iter().map(|(_, namespace)| cost(namespace)).sum();
        if bytes <= BYTES_MAX {
            return;
        }
        idle.sort_unstable();
        let before = change.deleted.len();
        for (_, namespace) in idle.into_iter().take(GIVE_WAY_MAX) {
            // Some more than have to, so that this is done seldom.
            if bytes <= BYTES_MAX - BYTES_MAX / 16 {
                break;
            }
            bytes -= cost(&namespace);
            change.deleted.push(namespace);
        }
        let gone = (change.deleted.len() - before) as u64;
        metrics::counter!("forebay_namespace_counts_dropped_total").increment(gone);
    }
}

impl OwnedShard {
    /// From the next batch on the namespace's topics that are forgotten count no more, nor will those that
    /// are there. Returns whether that can be done yet.
    pub fn forget_counts(&mut self, namespace: &Namespace) -> bool {
        let topics = &mut self.contents.topics;
        if !topics.tally_load.is_done() {
            return false;
        }
        if topics.forgotten.rows.contains_key(namespace) || topics.namespaces.contains_key(namespace) {
            topics.forgotten.deletions.insert(namespace.clone());
        }
        true
    }

    /// Some topics counted that are forgotten.
    pub fn has_forgotten(&self) -> bool {
        !self.contents.topics.forgotten.rows.is_empty()
    }

    /// The counts of forgotten topics, by namespace. Each is at its place before the topics of its namespace:
    /// behind `from`, and up to `through`.
    pub fn forgotten(
        &self,
        from: &Bound<TopicName>,
        through: Option<&TopicName>,
    ) -> impl Iterator<Item = (Namespace, LifetimeCounts)> {
        let first = match from {
            Bound::Included(name) if name.topic.is_empty() => Bound::Included(name.namespace.clone()),
            Bound::Included(name) | Bound::Excluded(name) => Bound::Excluded(name.namespace.clone()),
            Bound::Unbounded => Bound::Unbounded,
        };
        let through = through.map(|through| through.namespace.clone());
        let rows = self.contents.topics.forgotten.rows.range((first, Bound::Unbounded));
        let rows = rows.take_while(move |(of, _)| through.as_ref().is_none_or(|through| *of <= through));
        rows.filter_map(|(namespace, row)| Some((namespace.clone(), LifetimeCounts::of(row.tally?, 0))))
    }
}
