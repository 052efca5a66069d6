//! Points over time: one ring for each step, from seconds to minutes.

use std::{cmp::Ordering, collections::VecDeque};

/// When somebody looked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// In seconds since the Unix epoch.
    pub seconds: u64,
    /// For so many seconds from then on nobody looks again on purpose: until then it is as it was seen.
    pub holds: u64,
}

/// Points that room is made for at a time: what a ring has of room is exact, and not twice what it needs.
const ROOM: usize = 32;

/// Points of `N` series, one a step, for so many steps. A step in which nobody looked has NaN.
#[derive(Debug, Clone)]
pub(crate) struct Ring<const N: usize> {
    /// Seconds of a step.
    step: u64,
    /// Steps that are kept.
    keep: usize,
    /// The number of the step of the first point, counted since the Unix epoch.
    first: u64,
    /// The points of steps that are over.
    points: VecDeque<[f32; N]>,
    /// Step that goes on, with what was seen in it.
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
    /// Until this step, which is included, it is as the last of them has seen it.
    held: u64,
    /// Values that it has seen.
    last: [f32; N],
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

    /// Somebody looked. A point is the mean of its step's looks. What comes from before the last look, since
    /// a clock was set back, is dropped.
    pub fn add(&mut self, at: Look, seen: [f64; N]) {
        let step = at.seconds / self.step;
        // Looks follow the monotonic clock, seconds that of the wall: the next look may come just past the
        // second in which it is due. Longer steps have it all the same.
        let late = u64::from(self.step == 1);
        let (held, last) = ((at.seconds + at.holds + late) / self.step, seen.map(|value| value as f32));
        match &mut self.present {
            Some(present) if present.step == step => {
                present.looks += 1;
                (present.held, present.last) = (held, last);
                for (sum, value) in present.sums.iter_mut().zip(seen) {
                    *sum += value;
                }
                return;
            }
            Some(present) if present.step > step => return,
            _ => {}
        }
        let present = Present { step, looks: 1, sums: seen, held, last };
        if let Some(over) = self.present.replace(present) {
            self.push(over.step, over.mean());
            for held in over.step + 1..=over.held.min(step - 1) {
                self.push(held, over.last);
            }
        }
    }

    fn push(&mut self, step: u64, point: [f32; N]) {
        let next = self.first + self.points.len() as u64;
        if self.points.is_empty() || step >= next + self.keep as u64 {
            self.points.clear();
            self.first = step;
        } else {
            for _ in next..step {
                self.put([f32::NAN; N]);
            }
        }
        self.put(point);
    }

    /// Adds the next point. The oldest one goes where there are too many.
    fn put(&mut self, point: [f32; N]) {
        if self.points.len() == self.keep {
            self.points.pop_front();
            self.first += 1;
        }
        if self.points.len() == self.points.capacity() {
            self.points.reserve_exact(ROOM.min(self.keep - self.points.len()));
        }
        self.points.push_back(point);
    }

    /// The points of these steps, with the number of the first.
    pub fn of(&self, from: u64, until: u64) -> (u64, Vec<[f32; N]>) {
        let begin = from.max(self.first);
        let skip = usize::try_from(begin - self.first).unwrap_or(usize::MAX);
        let take = usize::try_from(until.saturating_sub(begin)).unwrap_or(usize::MAX);
        let mut found: Vec<_> = self.points.iter().skip(skip).take(take).copied().collect();
        let Some(present) = &self.present else { return (begin, found) };
        let end = begin + found.len() as u64;
        let is_old = until > present.step && present.step >= end + self.keep as u64;
        let begin = if found.is_empty() || is_old {
            found.clear();
            from.max(present.step)
        } else {
            begin
        };
        // Steps up to the present one, and those for which it holds.
        let end = begin + found.len() as u64;
        let known = present.held.max(present.step) + 1;
        for step in end..until.min(known).min(end + self.keep as u64) {
            found.push(match step.cmp(&present.step) {
                Ordering::Less => [f32::NAN; N],
                Ordering::Equal => present.mean(),
                Ordering::Greater => present.last,
            });
        }
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

    /// Somebody looks, and will look again in the next second.
    fn at(seconds: u64) -> Look {
        Look { seconds, holds: 0 }
    }

    fn firsts(ring: &Ring<2>, from: u64, until: u64) -> (u64, Vec<f32>) {
        let (first, points) = ring.of(from, until);
        (first, points.into_iter().map(|point| point[0]).collect())
    }

    #[test]
    fn a_point_is_the_mean_of_its_step() {
        let mut ring: Ring<2> = Ring::new(10, 5);
        for (seconds, value) in [(100, 1.0), (104, 2.0), (109, 6.0), (110, 7.0)] {
            ring.add(at(seconds), [value, 0.0]);
        }
        assert_eq!(firsts(&ring, 0, 11), (10, vec![3.0]), "the step that goes on is not asked for");
        assert_eq!(firsts(&ring, 0, 99), (10, vec![3.0, 7.0]));
        assert_eq!(firsts(&ring, 11, 12), (11, vec![7.0]));
    }

    #[test]
    fn gaps_stay_gaps_and_old_points_go() {
        let mut ring: Ring<2> = Ring::new(1, 4);
        for seconds in [1, 2, 5, 6] {
            ring.add(at(seconds), [seconds as f64, 0.0]);
        }
        let (first, points) = firsts(&ring, 0, 6);
        assert_eq!(first, 2, "four steps are kept");
        assert_eq!(points[..2], [2.0; 2], "a look may come a second late");
        assert!(points[2].is_nan());
        assert_eq!(points[3], 5.0);
        ring.add(at(1_000), [9.0, 0.0]);
        ring.add(at(1_001), [9.0, 0.0]);
        assert_eq!(firsts(&ring, 0, 1_001), (1_000, vec![9.0]), "nothing is left before a long gap");
    }

    #[test]
    fn a_clock_that_is_set_back_breaks_nothing() {
        let mut ring: Ring<2> = Ring::new(1, 4);
        [10, 11, 3, 4, 12].into_iter().for_each(|it| ring.add(at(it), [it as f64, 0.0]));
        assert_eq!(firsts(&ring, 0, 13), (10, vec![10.0, 11.0, 12.0]));
    }

    #[test]
    fn nothing_was_seen_before_the_first_look() {
        let ring: Ring<2> = Ring::new(1, 4);
        assert_eq!(firsts(&ring, 0, 99).1, [0.0; 0]);
        let mut ring: Ring<2> = Ring::new(1, 4);
        ring.add(at(50), [1.0, 0.0]);
        assert_eq!(firsts(&ring, 40, 60), (50, vec![1.0; 2]), "it holds for a second more");
    }

    /// So that the figures of a node that looks seldom can be added to those of one that looks often.
    #[test]
    fn what_was_seen_holds_until_the_next_look() {
        let (mut seconds, mut tens): (Ring<2>, Ring<2>) = (Ring::new(1, 300), Ring::new(10, 360));
        for (at, value) in [(105, 1.0), (115, 2.0), (127, 3.0)] {
            seconds.add(Look { seconds: at, holds: 9 }, [value, 0.0]);
            tens.add(Look { seconds: at, holds: 9 }, [value, 0.0]);
        }
        let (first, points) = firsts(&seconds, 0, 133);
        assert_eq!((first, &points[..10], &points[10..21]), (105, &[1.0; 10][..], &[2.0; 11][..]));
        assert!(points[21].is_nan(), "it looked too late");
        assert_eq!(points[22..], [3.0; 6]);
        assert_eq!(firsts(&seconds, 128, 131), (128, vec![3.0; 3]));
        assert_eq!(firsts(&seconds, 130, 999).1.len(), 8, "not for ever");
        assert_eq!(firsts(&tens, 0, 14), (10, vec![1.0, 2.0, 3.0, 3.0]));
    }

    #[test]
    fn a_full_ring_has_room_for_its_points_alone() {
        let mut ring: Ring<12> = Ring::new(1, 300);
        (0..1_000).for_each(|second| ring.add(at(second), [1.0; 12]));
        assert_eq!((ring.points.len(), ring.points.capacity()), (300, 300));
    }
}
