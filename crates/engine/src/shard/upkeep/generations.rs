//! The generations of the dedupe table: created ahead, dropped whole once every window over them has passed.

use std::time::Duration;

use forebay_types::{Monotonic, Timestamp};

use crate::{
    api::Settings,
    planted::{Bug, on},
};

/// A generation of the dedupe table lasts at least so long.
const GENERATION_MIN: Duration = Duration::from_secs(60);

/// The generations of one shard.
#[derive(Debug, Default)]
pub(in crate::shard) struct Generations {
    /// Oldest first. The number of each is the second from which on it takes keys.
    live: Vec<u64>,
    /// The first one, or the first after a long pause, that was to be created last.
    first_tried: Option<u64>,
    /// One is being created or dropped.
    changing: bool,
    /// The next try after a failure waits until then.
    not_before: Monotonic,
    /// None is dropped before: the time has stepped, and windows of before go on.
    keep_until: Monotonic,
}

/// Generations to be created and dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GenerationChange {
    /// The generations that exist.
    pub live: Vec<u64>,
    /// To be created.
    pub create: Vec<u64>,
    /// To be dropped.
    pub drop: Vec<u64>,
}

impl Generations {
    /// As the store has them.
    pub fn new(live: Vec<u64>) -> Self {
        Self { live, ..Self::default() }
    }

    /// The generations that exist, oldest first.
    pub fn live(&self) -> &[u64] {
        &self.live
    }

    /// The generation that takes keys at `now`. Where an owner whose clock was ahead created the first one,
    /// that takes keys early: it only keeps them for longer.
    pub fn current(&self, now: Timestamp) -> Option<u64> {
        let seconds = u64::try_from(now.as_micros() / 1_000_000).unwrap_or(0);
        self.live.iter().rev().find(|number| **number <= seconds).or(self.live.first()).copied()
    }

    /// Begins the next change: generations to create and to drop, if any. Nothing else is begun until it has
    /// ended.
    pub fn begin_change(
        &mut self,
        settings: &Settings,
        now: Timestamp,
        at: Monotonic,
    ) -> Option<GenerationChange> {
        if self.changing || at < self.not_before || self.next_change(settings, at) > now {
            return None;
        }
        let span = generation_span(settings);
        let seconds = u64::try_from(now.as_micros() / 1_000_000).unwrap_or(0);
        let mut create = Vec::new();
        let mut last = self.live.last().copied();
        if last.is_none_or(|last| last + 2 * span.as_secs() <= seconds) {
            // The first, or the first after a long pause. A try that failed may have created it all the same.
            let tried = self.first_tried.filter(|tried| tried + span.as_secs() > seconds);
            let first = *self.first_tried.insert(tried.unwrap_or(seconds));
            create.push(first);
            last = Some(first);
        }
        if let Some(last) = last
            && last + span.as_secs() / 2 <= seconds
        {
            create.push(last + span.as_secs());
        }
        let expired = |next: u64| next + window(settings).as_secs() < seconds;
        let may_drop = at >= self.keep_until;
        let pairs = self.live.windows(2).filter(|pair| may_drop && expired(pair[1]));
        let drop: Vec<u64> = pairs.map(|pair| pair[0]).collect();
        if create.is_empty() && drop.is_empty() {
            return None;
        }
        self.changing = true;
        Some(GenerationChange { live: self.live.clone(), create, drop })
    }

    /// A change ended, with these generations. What is missing is tried again after `retry_at`.
    pub fn end_change(&mut self, live: Vec<u64>, retry_at: Option<Monotonic>) {
        self.changing = false;
        self.live = live;
        self.not_before = retry_at.unwrap_or(self.not_before);
    }

    /// The time has stepped. Windows that began before last as long as they were to.
    pub fn step(&mut self, settings: &Settings, at: Monotonic) {
        self.keep_until = at.plus(window(settings));
    }

    /// When [`Generations::begin_change`] has something to do. `None`: a change is under way.
    pub fn next_wake(&self, settings: &Settings, now: Timestamp, at: Monotonic) -> Option<Monotonic> {
        let next = self.next_change(settings, at);
        (!self.changing).then(|| at.plus(next.since(now)).max(self.not_before))
    }

    /// When a generation is to be created or dropped next.
    fn next_change(&self, settings: &Settings, at: Monotonic) -> Timestamp {
        let second =
            |second: u64| Timestamp::from_micros(i64::try_from(second).unwrap_or(i64::MAX) * 1_000_000);
        let Some(last) = self.live.last() else { return Timestamp::MIN };
        let create = second(last + generation_span(settings).as_secs() / 2);
        let window = window(settings).as_secs();
        let drop = self.live.get(1).filter(|_| at >= self.keep_until).map(|next| second(next + window + 1));
        drop.map_or(create, |drop| drop.min(create))
    }
}

/// How long a generation is kept once the next one takes the keys.
fn window(settings: &Settings) -> Duration {
    if on(Bug::GenerationDroppedEarly) { Duration::ZERO } else { settings.longest_dedupe_window() }
}

fn generation_span(settings: &Settings) -> Duration {
    settings.longest_dedupe_window().max(GENERATION_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000)
    }

    #[test]
    fn generations_are_created_ahead_and_dropped_when_no_window_reaches_them() {
        let settings = Settings::default(); // windows of 600 s
        let at = Monotonic::default();
        let mut generations = Generations::default();
        let change = generations.begin_change(&settings, second(1_000), at).unwrap();
        assert_eq!((change.create, change.drop), (vec![1_000], vec![]));
        assert_eq!(generations.begin_change(&settings, second(1_001), at), None, "one change at a time");
        generations.end_change(vec![1_000], None);
        assert_eq!(generations.current(second(999)), Some(1_000), "its owner's clock was ahead");
        let change = generations.begin_change(&settings, second(1_300), at).unwrap();
        assert_eq!(change.create, [1_600], "half a span ahead");
        generations.end_change(vec![1_000, 1_600], None);
        assert_eq!(generations.current(second(1_599)), Some(1_000));
        assert_eq!(generations.current(second(1_600)), Some(1_600));
        let change = generations.begin_change(&settings, second(2_201), at).unwrap();
        assert_eq!((change.create, change.drop), (vec![2_200], vec![1_000]));
    }

    #[test]
    fn none_is_dropped_for_a_window_after_the_time_has_stepped() {
        let settings = Settings::default();
        let at = |seconds| Monotonic::from_start(Duration::from_secs(seconds));
        let mut generations = Generations::new(vec![1_000, 1_600, 5_200]);
        generations.step(&settings, at(10));
        assert_eq!(generations.begin_change(&settings, second(5_201), at(609)), None);
        assert!(generations.next_wake(&settings, second(5_201), at(11)) > Some(at(11)), "it does not spin");
        let change = generations.begin_change(&settings, second(5_202), at(610)).unwrap();
        assert_eq!(change.drop, [1_000]);
    }

    #[test]
    fn a_failed_change_is_tried_again_later() {
        let settings = Settings::default();
        let mut generations = Generations::default();
        generations.begin_change(&settings, second(1_000), Monotonic::default()).unwrap();
        let later = Monotonic::from_start(Duration::from_secs(1));
        generations.end_change(Vec::new(), Some(later));
        assert_eq!(generations.begin_change(&settings, second(1_000), Monotonic::default()), None);
        let change = generations.begin_change(&settings, second(1_001), later).unwrap();
        assert_eq!(change.create, [1_000], "the same one");
    }

    #[test]
    fn what_was_created_is_known_although_a_drop_failed() {
        let settings = Settings::default();
        let at = Monotonic::default();
        let mut generations = Generations::new(vec![1_000, 1_600]);
        let change = generations.begin_change(&settings, second(2_201), at).unwrap();
        assert_eq!((change.create, change.drop), (vec![2_200], vec![1_000]));
        generations.end_change(vec![1_000, 1_600, 2_200], Some(at));
        let change = generations.begin_change(&settings, second(2_202), at).unwrap();
        assert_eq!((change.create, change.drop), (vec![], vec![1_000]), "only the drop is tried again");
    }
}
