//! How long the items of a topic wait, and how long its deliveries last.

use std::{ops::AddAssign, time::Duration};

/// Lengths below this power of two microseconds, about a millisecond, are not told apart.
const SHORTEST: u32 = 10;
/// Lengths from this power of two microseconds on, 38 hours, are not told apart.
const LONGEST: u32 = 37;
/// Two for each power of two between them, and one for what is shorter.
const BUCKETS: usize = 1 + 2 * (LONGEST - SHORTEST) as usize;

/// Lengths of time, counted by how long they are. Each bucket is at most half as long again as it begins, so
/// a percentile is at most a third too small, or half too large, and mostly much nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histogram([u32; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Histogram {
    /// Counts one.
    pub fn record(&mut self, length: Duration) {
        let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        let power = micros.checked_ilog2().unwrap_or(0);
        let bucket = match power.checked_sub(SHORTEST) {
            None => 0,
            Some(over) => 1 + 2 * over as usize + usize::from(micros >> (power - 1) & 1 == 1),
        };
        let count = &mut self.0[bucket.min(BUCKETS - 1)];
        *count = count.saturating_add(1);
    }

    /// The length that this part of all of them does not exceed: 0.5 is the median. Within a bucket, lengths
    /// count as spread evenly. `None`: none was counted.
    pub fn percentile(&self, part: f64) -> Option<Duration> {
        let all: u64 = self.0.iter().copied().map(u64::from).sum();
        let wanted = part * all as f64;
        let mut below = 0.0;
        for (bucket, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = f64::from(*count);
            if below + count >= wanted {
                let (from, until) = (begin(bucket), begin(bucket + 1));
                let micros = from + (until - from) * ((wanted - below) / count).clamp(0.0, 1.0);
                return Some(Duration::from_micros(micros as u64));
            }
            below += count;
        }
        None
    }

    /// The counts, from the shortest lengths on, without the zeros at the end.
    pub fn counts(&self) -> &[u32] {
        let used = self.0.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        &self.0[..used]
    }

    /// Of the counts that another node told. What it has beyond the longest lengths is left out.
    pub fn of_counts(counts: &[u32]) -> Self {
        let mut of = Self::default();
        of.0.iter_mut().zip(counts).for_each(|(own, count)| *own = *count);
        of
    }
}

/// Where a bucket begins, in microseconds.
fn begin(bucket: usize) -> f64 {
    let Some(half_powers) = bucket.checked_sub(1) else { return 0.0 };
    let power = (1_u64 << (SHORTEST as usize + half_powers / 2)) as f64;
    if half_powers % 2 == 0 { power } else { 1.5 * power }
}

impl AddAssign<&Self> for Histogram {
    fn add_assign(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

/// How long it took, over the last one to two minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latencies {
    /// From when items were ready until they were delivered.
    pub waits: Histogram,
    /// From when deliveries began until they were acked.
    pub handlings: Histogram,
}

impl AddAssign<&Self> for Latencies {
    fn add_assign(&mut self, other: &Self) {
        self.waits += &other.waits;
        self.handlings += &other.handlings;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        lengths.into_iter().for_each(|micros| histogram.record(Duration::from_micros(micros)));
        histogram
    }

    #[test]
    fn a_percentile_is_near_the_length_that_was_counted() {
        for micros in [1_500, 10_000, 123_456, 7_000_000, 3_600_000_000, 80_000_000_000] {
            let found = of([micros; 9]).percentile(0.99).unwrap().as_micros() as f64;
            let ratio = found / micros as f64;
            assert!((0.66..1.5).contains(&ratio), "{micros} µs are {found}");
        }
    }

    #[test]
    fn percentiles_tell_the_slow_ones_from_the_others() {
        let histogram = of((1..=1_000).map(|number| if number > 980 { 5_000_000 } else { number * 20 }));
        let at = |part| histogram.percentile(part).unwrap().as_secs_f64();
        assert!((at(0.5) - 0.010).abs() < 0.002, "{}", at(0.5));
        assert!((at(0.99) - 5.0).abs() < 1.2, "{}", at(0.99));
        assert_eq!(Histogram::default().percentile(0.5), None);
    }

    #[test]
    fn lengths_out_of_range_are_counted_at_its_ends() {
        let histogram = of([0, 1, 1_023, u64::MAX]);
        assert_eq!((histogram.0[0], histogram.0[BUCKETS - 1], histogram.counts().len()), (3, 1, BUCKETS));
    }

    #[test]
    fn buckets_lie_one_behind_the_other() {
        for bucket in 1..BUCKETS {
            let (first, last) = (begin(bucket) as u64, begin(bucket + 1) as u64 - 1);
            assert_eq!(of([first, last]).0[bucket], 2, "{first} to {last} µs");
        }
    }

    #[test]
    fn counts_of_nodes_are_added_up_as_they_were() {
        let (one, other) = (of([5_000, 7]), of([9_000_000, 5_000]));
        assert_eq!(Histogram::of_counts(one.counts()), one);
        let mut sum = one;
        sum += &Histogram::of_counts(other.counts());
        assert_eq!(sum, of([5_000, 7, 9_000_000, 5_000]));
        assert_eq!(Histogram::of_counts(&[1; 1_000]).counts().len(), BUCKETS);
    }
}
