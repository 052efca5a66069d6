//! Counts of topics that are forgotten, in a shard's memory: one row a namespace.

use std::collections::{BTreeMap, BTreeSet};

use forebay_store::NamespaceTally;
use forebay_types::Namespace;

use crate::shard::commit::in_flight::ForgottenChange;

/// Bytes of a namespace beside its name.
const ENTRY_BYTES: usize = 192;

/// The counts of forgotten topics.
#[derive(Debug, Default)]
pub(in crate::shard) struct ForgottenCounts {
    /// The rows.
    pub(in crate::shard) rows: BTreeMap<Namespace, NamespaceTally>,
    /// Their bytes.
    pub(super) bytes: usize,
    /// Namespaces that are to count anew, as of the next batch.
    pub(super) deletions: BTreeSet<Namespace>,
}

impl ForgottenCounts {
    /// Rows were read.
    pub fn load(&mut self, rows: Vec<NamespaceTally>) {
        rows.into_iter().for_each(|row| self.put(row));
    }

    /// A batch was committed.
    pub fn apply(&mut self, change: ForgottenChange) {
        change.written.into_iter().for_each(|row| self.put(row));
        change.deleted.iter().for_each(|namespace| self.remove(namespace));
    }

    /// A batch did not happen.
    pub fn undo(&mut self, change: ForgottenChange) {
        self.deletions.extend(change.deletions);
    }

    /// A batch has something to do.
    pub fn wants_batch(&self) -> bool {
        !self.deletions.is_empty()
    }

    fn put(&mut self, row: NamespaceTally) {
        self.remove(&row.namespace.clone());
        self.bytes += cost(&row.namespace);
        self.rows.insert(row.namespace.clone(), row);
    }

    fn remove(&mut self, namespace: &Namespace) {
        if self.rows.remove(namespace).is_some() {
            self.bytes -= cost(namespace);
        }
    }
}

/// The bytes of a namespace.
pub(super) fn cost(namespace: &Namespace) -> usize {
    namespace.len() + ENTRY_BYTES
}
