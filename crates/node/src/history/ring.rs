//! Points over time: one ring for each step, from seconds to minutes.

use std::collections::VecDeque;

/// Points of `N` series, one a step, for so many steps. A step in which nobody looked has NaN.
#[derive(Debug, Clone)]
pub struct Ring<const N: usize> {
    /// Seconds of a step.
    step: u64,
    /// Steps that are kept.
    keep: usize,
    /// The number of the step of the first point, counted since the Unix epoch.
    first: u64,
    /// The points of steps that are over.
    points: VecDeque<[f32; N]>,
    /// What was seen in the present step.
    present: Option<Present<N>>,
}

/// A step that goes on.
#[derive(Debug, Clone, Copy)]
struct Present<const N: usize> {
    /// Its number.
    step: u64,
    /// How often somebody looked.
    looks: u32,
    /// Sums over these looks.
    sums: [f64; N],
}

impl<const N: usize> Present<N> {
    fn mean(&self) -> [f32; N] {
        self.sums.map(|sum| (sum / f64::from(self.looks)) as f32)
    }
}

impl<const N: usize> Ring<N> {
    /// An empty one.
    pub fn new(step: u64, keep: usize) -> Self {
        Self { step, keep, first: 0, points: VecDeque::new(), present: None }
    }

    /// Somebody looked, at so many seconds since the Unix epoch. A point is the mean of its step's looks.
    /// What comes from before the last look, since a clock was set back, is dropped.
    pub fn add(&mut self, seconds: u64, seen: [f64; N]) {
        let step = seconds / self.step;
        match &mut self.present {
            Some(present) if present.step == step => {
                present.looks += 1;
                for (sum, value) in present.sums.iter_mut().zip(seen) {
                    *sum += value;
                }
                return;
            }
            Some(present) if present.step > step => return,
            _ => {}
        }
        if let Some(over) = self.present.replace(Present { step, looks: 1, sums: seen }) {
            self.push(over.step, over.mean());
        }
    }

    fn push(&mut self, step: u64, point: [f32; N]) {
        let next = self.first + self.points.len() as u64;
        if self.points.is_empty() || step >= next + self.keep as u64 {
            self.points.clear();
            self.first = step;
        } else {
            self.points.extend((next..step).map(|_| [f32::NAN; N]));
        }
        self.points.push_back(point);
        while self.points.len() > self.keep {
            self.points.pop_front();
            self.first += 1;
        }
    }

    /// The points of these steps, with the number of the first.
    pub fn of(&self, from: u64, until: u64) -> (u64, Vec<[f32; N]>) {
        let begin = from.max(self.first);
        let skip = usize::try_from(begin - self.first).unwrap_or(usize::MAX);
        let take = usize::try_from(until.saturating_sub(begin)).unwrap_or(usize::MAX);
        let mut found: Vec<_> = self.points.iter().skip(skip).take(take).copied().collect();
        let Some(present) = &self.present else { return (begin, found) };
        if !(from..until).contains(&present.step) {
            return (begin, found);
        }
        if found.is_empty() {
            return (present.step, vec![present.mean()]);
        }
        let behind = present.step.saturating_sub(begin + found.len() as u64);
        let gap = usize::try_from(behind).unwrap_or(usize::MAX).min(self.keep);
        found.extend(std::iter::repeat_n([f32::NAN; N], gap));
        found.push(present.mean());
        (begin, found)
    }

    /// Seconds of a step.
    pub fn step(&self) -> u64 {
        self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(ring: &Ring<2>, from: u64, until: u64) -> (u64, Vec<f32>) {
        let (first, points) = ring.of(from, until);
        (first, points.into_iter().map(|point| point[0]).collect())
    }

    #[test]
    fn a_point_is_the_mean_of_its_step() {
        let mut ring: Ring<2> = Ring::new(10, 5);
        for (at, value) in [(100, 1.0), (104, 2.0), (109, 6.0), (110, 7.0)] {
            ring.add(at, [value, 0.0]);
        }
        assert_eq!(firsts(&ring, 0, 11), (10, vec![3.0]), "the step that goes on is not asked for");
        assert_eq!(firsts(&ring, 0, 99), (10, vec![3.0, 7.0]));
        assert_eq!(firsts(&ring, 11, 12), (11, vec![7.0]));
    }

    #[test]
    fn gaps_stay_gaps_and_old_points_go() {
        let mut ring: Ring<2> = Ring::new(1, 4);
        for at in [1, 2, 5, 6] {
            ring.add(at, [at as f64, 0.0]);
        }
        let (first, points) = firsts(&ring, 0, 6);
        assert_eq!(first, 2, "four steps are kept");
        assert_eq!(points[0], 2.0);
        assert!(points[1].is_nan() && points[2].is_nan());
        assert_eq!(points[3], 5.0);
        ring.add(1_000, [9.0, 0.0]);
        ring.add(1_001, [9.0, 0.0]);
        assert_eq!(firsts(&ring, 0, 1_001), (1_000, vec![9.0]), "nothing is left before a long gap");
    }

    #[test]
    fn a_clock_that_is_set_back_breaks_nothing() {
        let mut ring: Ring<2> = Ring::new(1, 4);
        [10, 11, 3, 4, 12].into_iter().for_each(|at| ring.add(at, [at as f64, 0.0]));
        assert_eq!(firsts(&ring, 0, 99), (10, vec![10.0, 11.0, 12.0]));
    }

    #[test]
    fn nothing_was_seen_before_the_first_look() {
        let ring: Ring<2> = Ring::new(1, 4);
        assert_eq!(firsts(&ring, 0, 99).1, [0.0; 0]);
        let mut ring: Ring<2> = Ring::new(1, 4);
        ring.add(50, [1.0, 0.0]);
        assert_eq!(firsts(&ring, 40, 60), (50, vec![1.0]));
    }
}
