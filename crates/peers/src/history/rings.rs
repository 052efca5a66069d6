//! The lines of one thing, and of many things of which the busiest are kept.

use std::{collections::HashMap, hash::Hash};

use super::ring::{Look, Ring};

/// Lines of which nothing was seen for so long are dropped, in seconds.
const FORGET_AFTER: u64 = 86_400;

/// All rings of one thing.
#[derive(Debug, Clone)]
pub struct Lines<const N: usize> {
    /// From short steps to long ones.
    rings: Vec<Ring<N>>,
    /// When it was looked at last, in seconds since the Unix epoch.
    seen: u64,
}

impl<const N: usize> Lines<N> {
    /// Without points.
    pub fn new(steps: &[(u64, usize)]) -> Self {
        let rings = steps.iter().map(|(step, keep)| Ring::new(*step, *keep)).collect();
        Self { rings, seen: 0 }
    }

    /// Somebody looked.
    pub fn add(&mut self, at: Look, seen: [f64; N]) {
        self.seen = at.seconds;
        self.rings.iter_mut().for_each(|ring| ring.add(at, seen));
    }

    /// The ring of a step.
    pub fn ring(&self, step: u64) -> Option<&Ring<N>> {
        self.rings.iter().find(|ring| ring.step() == step)
    }
}

/// Lines of many things, so many at most.
pub(crate) struct KeyedLines<K, const N: usize> {
    /// By name.
    by_key: HashMap<K, Lines<N>>,
    /// At most this many are kept.
    most: usize,
    /// Steps of each.
    steps: &'static [(u64, usize)],
}

impl<K: Clone + Eq + Hash, const N: usize> KeyedLines<K, N> {
    /// None yet.
    pub fn new(most: usize, steps: &'static [(u64, usize)]) -> Self {
        Self { by_key: HashMap::new(), most, steps }
    }

    /// The ring of a step.
    pub fn ring(&self, key: &K, step: u64) -> Option<&Ring<N>> {
        self.by_key.get(key)?.ring(step)
    }

    /// How many have lines.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Adds what was seen. Where there is no room, one in which more than twice as much happens replaces the
    /// one in which least does.
    pub fn add<'a>(&mut self, at: Look, seen: impl Iterator<Item = (&'a K, [f64; N])>)
    where
        K: 'a,
    {
        let mut others: Vec<(&K, [f64; N])> = Vec::new();
        let mut calm: Vec<(f64, K)> = Vec::new();
        for (key, values) in seen {
            match self.by_key.get_mut(key) {
                Some(lines) => {
                    calm.push((business(&values), key.clone()));
                    lines.add(at, values);
                }
                None => others.push((key, values)),
            }
        }
        self.by_key.retain(|_, lines| lines.seen + FORGET_AFTER > at.seconds);
        let gone = self
            .by_key
            .iter()
            .filter(|(_, lines)| lines.seen < at.seconds)
            .map(|(key, _)| (0.0, key.clone()));
        calm.extend(gone);
        calm.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        others.sort_by(|(_, one), (_, other)| business(other).total_cmp(&business(one)));
        for (key, values) in others.into_iter().take(self.most) {
            if self.by_key.len() >= self.most {
                let Some((least, calmest)) = calm.pop() else { return };
                if business(&values) <= 2.0 * least {
                    return;
                }
                self.by_key.remove(&calmest);
            }
            let mut lines = Lines::new(self.steps);
            lines.add(at, values);
            self.by_key.insert(key.clone(), lines);
        }
    }
}

/// How much happens: what is enqueued, delivered, acked and failed a second.
fn business<const N: usize>(values: &[f64; N]) -> f64 {
    values.iter().take(4).sum()
}
