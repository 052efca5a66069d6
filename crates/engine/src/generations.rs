//! The generations of the dedupe table: made ahead, dropped whole once every window over them has passed.

use std::time::Duration;

use forebay_types::{Monotonic, Timestamp};

use crate::{Settings, shard::Owned};

/// A generation of the dedupe table lasts at least so long.
const GENERATION_MIN: Duration = Duration::from_secs(60);

impl Owned {
    /// Generations of the dedupe table that are to be made and dropped now.
    pub fn wanted_generations(
        &mut self,
        settings: &Settings,
        now: Timestamp,
        at: Monotonic,
    ) -> Option<(Vec<u64>, Vec<u64>)> {
        if self.generations.busy
            || at < self.generations.not_before
            || self.next_generation_change(settings) > now
        {
            return None;
        }
        let span = generation_span(settings);
        let seconds = u64::try_from(now.as_micros() / 1_000_000).unwrap_or(0);
        let live = &self.generations.live;
        let mut create = Vec::new();
        let mut last = live.last().copied();
        if last.is_none_or(|last| last + 2 * span.as_secs() <= seconds) {
            // The first, or the first after a long pause.
            create.push(seconds);
            last = Some(seconds);
        }
        if let Some(last) = last
            && last + span.as_secs() / 2 <= seconds
        {
            create.push(last + span.as_secs());
        }
        let expired = |next: u64| next + longest_window(settings).as_secs() < seconds;
        let drop = live.windows(2).filter(|pair| expired(pair[1])).map(|pair| pair[0]).collect::<Vec<_>>();
        if create.is_empty() && drop.is_empty() {
            return None;
        }
        self.generations.busy = true;
        Some((create, drop))
    }

    /// When a generation is to be made or dropped next.
    pub fn next_generation_change(&self, settings: &Settings) -> Timestamp {
        let second =
            |second: u64| Timestamp::from_micros(i64::try_from(second).unwrap_or(i64::MAX) * 1_000_000);
        let live = &self.generations.live;
        let Some(last) = live.last() else { return Timestamp::MIN };
        let make = second(last + generation_span(settings).as_secs() / 2);
        let drop = live.get(1).map(|next| second(next + longest_window(settings).as_secs() + 1));
        drop.map_or(make, |drop| drop.min(make))
    }
}

/// The generation that takes keys at `now`.
pub(crate) fn current_generation(live: &[u64], now: Timestamp) -> Option<u64> {
    let seconds = u64::try_from(now.as_micros() / 1_000_000).unwrap_or(0);
    live.iter().rev().find(|number| **number <= seconds).copied()
}

pub(crate) fn longest_window(settings: &Settings) -> Duration {
    settings.dedupe_windows.values().copied().fold(settings.dedupe_window, Duration::max)
}

fn generation_span(settings: &Settings) -> Duration {
    longest_window(settings).max(GENERATION_MIN)
}
