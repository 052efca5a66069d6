//! A hash table in many parts, for what may have a million entries.
//!
//! One table that grows moves all of its entries at once, and everybody waits for that. Here a part moves
//! alone. The parts also make a walk over all entries possible in slices: one part, then the next.

use std::{
    collections::HashMap,
    fmt::{self, Debug},
    hash::{BuildHasher, Hash},
};

use rustc_hash::FxBuildHasher;

/// How many parts a table has.
pub(crate) const STRIPES: usize = 256;

/// A hash table in [`STRIPES`] parts.
pub(crate) struct StripedMap<K, V, S = FxBuildHasher> {
    /// The parts. Empty until something is inserted.
    stripes: Vec<HashMap<K, V, S>>,
    /// Entries of all parts.
    len: usize,
}

impl<K, V, S> Default for StripedMap<K, V, S> {
    fn default() -> Self {
        Self { stripes: Vec::new(), len: 0 }
    }
}

impl<K: Debug, V: Debug, S> Debug for StripedMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.stripes.iter().flatten()).finish()
    }
}

impl<K: Hash + Eq, V, S: BuildHasher + Default> StripedMap<K, V, S> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.stripes.get(stripe_of(key))?.get(key)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.stripes.get_mut(stripe_of(key))?.get_mut(key)
    }

    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Returns what was there before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let old = self.of(&key).insert(key, value);
        self.len += usize::from(old.is_none());
        old
    }

    /// The value of a key, which is made if there is none.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.len += usize::from(!self.contains_key(&key));
        self.of(&key).entry(key).or_default()
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.stripes.get_mut(stripe_of(key))?.remove(key)?;
        self.len -= 1;
        Some(value)
    }

    /// The entries of one part.
    pub fn stripe(&self, stripe: usize) -> impl Iterator<Item = (&K, &V)> {
        self.stripes.get(stripe).into_iter().flatten()
    }

    /// Takes the entries of one part.
    pub fn take_stripe(&mut self, stripe: usize) -> HashMap<K, V, S> {
        let taken = self.stripes.get_mut(stripe).map(std::mem::take).unwrap_or_default();
        self.len -= taken.len();
        taken
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.stripes.iter().filter(|stripe| !stripe.is_empty()).flatten()
    }

    fn of(&mut self, key: &K) -> &mut HashMap<K, V, S> {
        if self.stripes.is_empty() {
            self.stripes = (0..STRIPES).map(|_| HashMap::default()).collect();
        }
        &mut self.stripes[stripe_of(key)]
    }
}

/// In which part a key is. The tables themselves use other bits of their hashes.
fn stripe_of(key: &impl Hash) -> usize {
    (FxBuildHasher.hash_one(key) >> 32) as usize % STRIPES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_in_one_part() {
        let mut table: StripedMap<u64, u64> = StripedMap::default();
        assert!(table.is_empty() && table.get(&1).is_none() && table.remove(&1).is_none());
        (0..1_000).for_each(|key| assert_eq!(table.insert(key, key), None));
        assert_eq!((table.insert(7, 8), table.len(), table.iter().count()), (Some(7), 1_000, 1_000));
        *table.or_default(7) += 1;
        *table.or_default(1_000) += 1;
        assert_eq!((table.get(&7), table.get(&1_000), table.len()), (Some(&9), Some(&1), 1_001));
        assert_eq!((table.remove(&1_000), table.remove(&1_000), table.len()), (Some(1), None, 1_000));
        assert!(table.stripes.iter().all(|stripe| stripe.len() < 16), "{:?}", table.stripes);
        let walked: usize = (0..=STRIPES).map(|stripe| table.stripe(stripe).count()).sum();
        let taken: usize = (0..=STRIPES).map(|stripe| table.take_stripe(stripe).len()).sum();
        assert_eq!((walked, taken, table.len()), (1_000, 1_000, 0));
    }

    #[test]
    fn names_are_spread_over_the_parts() {
        let mut table: StripedMap<String, ()> = StripedMap::default();
        (0..10_000).for_each(|name| {
            table.insert(format!("orders-{name}"), ());
        });
        assert!(table.stripes.iter().all(|stripe| (10..80).contains(&stripe.len())), "{table:?}");
    }
}
