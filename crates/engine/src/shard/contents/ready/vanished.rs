//! Items of the ready index that are not in the store, until it is certain that they were this owner's.

use forebay_types::{Monotonic, Seq};

/// Once so many items are not in the store, the memory of the shard is wrong.
const VANISHED_MAX: usize = 3;

/// The items that were found missing.
#[derive(Debug, Default)]
pub(in crate::shard) struct MissingItems {
    /// Since the claim was renewed last, and when.
    unsure: Vec<(Monotonic, Seq)>,
    /// How many are missing for certain.
    count: usize,
}

impl MissingItems {
    /// An item is missing.
    pub fn note(&mut self, seq: Seq, at: Monotonic) {
        self.unsure.push((at, seq));
    }

    /// A renewal that began then has succeeded: what was missing before was this owner's. Returns it, and
    /// whether it is so many by now that memory is wrong.
    pub fn confirm(&mut self, began: Monotonic) -> (Vec<Seq>, bool) {
        let sure: Vec<Seq> = self.unsure.extract_if(.., |(at, _)| *at <= began).map(|(_, seq)| seq).collect();
        let before = self.count;
        self.count += sure.len();
        (sure, before < VANISHED_MAX && self.count >= VANISHED_MAX)
    }
}
