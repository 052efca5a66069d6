//! Randomness from one seed, the same on every platform.

use std::time::Duration;

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice with a seed. Neighbouring seeds are unrelated.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Independent dice for a part of the run, so that one part's throws do not change another's.
    pub fn fork(&mut self) -> Self {
        Self::new(self.next())
    }

    /// 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "dice never run out")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number from `from` to `to`, both included.
    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True in `per_mille` of 1,000 throws.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1_000) < u64::from(per_mille)
    }

    /// One element of a slice, which must not be empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[at as usize]
    }

    /// A span between two numbers of milliseconds, both included.
    pub fn millis(&mut self, range: (u64, u64)) -> Duration {
        Duration::from_millis(self.within(range.0, range.1))
    }
}
