//! Which server handed out a delivery. It most likely owns the item's shard, so what settles the delivery
//! goes there first.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Deliveries that are remembered for sure. Up to twice as many are.
const REMEMBERED: usize = 100_000;

/// Which server handed out a delivery. The oldest deliveries are forgotten when there are very many: what
/// settles them then finds its server as any other call does.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Hashes a receipt. Two receipts with one hash only cost a call that goes elsewhere first.
    hasher: RandomState,
    /// Ids that are remembered.
    generations: Mutex<Generations>,
}

/// Endpoints' ids by the hash of a receipt.
#[derive(Debug, Default)]
struct Generations {
    /// The latest.
    young: HashMap<u64, u32>,
    /// Ids before them, forgotten as a whole when the latest are many.
    old: HashMap<u64, u32>,
}

impl Origins {
    /// The server of this id handed these out.
    pub(crate) fn remember<'a>(&self, receipts: impl Iterator<Item = &'a str>, id: u32) {
        let mut generations = self.lock();
        for receipt in receipts.filter(|receipt| !receipt.is_empty()) {
            if generations.young.len() >= REMEMBERED {
                generations.old = mem::take(&mut generations.young);
            }
            generations.young.insert(self.hasher.hash_one(receipt), id);
        }
    }

    /// Server that handed it out, if that is known.
    pub(crate) fn of(&self, receipt: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(receipt);
        let generations = self.lock();
        generations.young.get(&hash).or_else(|| generations.old.get(&hash)).copied()
    }

    /// The delivery is over.
    pub(crate) fn forget(&self, receipt: &str) {
        let hash = self.hasher.hash_one(receipt);
        let mut generations = self.lock();
        generations.young.remove(&hash);
        generations.old.remove(&hash);
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // A panic while the lock is held leaves valid maps.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_until_they_are_over() {
        let origins = Origins::default();
        origins.remember(["a", "", "b"].into_iter(), 7);
        assert_eq!((origins.of("a"), origins.of("b"), origins.of("")), (Some(7), Some(7), None));
        origins.forget("a");
        assert_eq!((origins.of("a"), origins.of("b")), (None, Some(7)));

        let later: Vec<_> = (0..REMEMBERED).map(|number| number.to_string()).collect();
        origins.remember(later.iter().map(String::as_str), 8);
        assert!(later.iter().all(|receipt| origins.of(receipt) == Some(8)));
        origins.remember(later.iter().map(String::as_str), 9);
        assert_eq!(origins.of("b"), None, "the oldest are forgotten");
        let generations = origins.lock();
        assert!(generations.young.len() + generations.old.len() <= 2 * REMEMBERED);
    }
}
