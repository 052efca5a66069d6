//! Events that come again and again, and are logged seldom.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// All that follow within this time are one episode.
const GAP: Duration = Duration::from_secs(60);

/// An event that comes again and again, and is logged once an episode.
#[derive(Debug, Default)]
pub struct Episodes(Mutex<Option<Instant>>);

impl Episodes {
    /// It happens now: whether this is the first time for a while.
    pub fn begins(&self) -> bool {
        let now = Instant::now();
        // Nobody panics with the lock, and a time is always consistent.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.replace(now).is_none_or(|last| now.duration_since(last) > GAP)
    }
}

/// An event that comes again and again, and is logged once a minute, with how often it has come.
#[derive(Debug, Default)]
pub struct Minutes {
    /// When it was last told.
    told: Option<Instant>,
    /// How often it has happened since.
    since: u64,
}

impl Minutes {
    /// It happens now. Returns how often it has, if it is time to tell.
    pub fn count(&mut self) -> Option<u64> {
        let now = Instant::now();
        self.since += 1;
        let due = self.told.is_none_or(|told| now.duration_since(told) >= GAP);
        due.then(|| {
            self.told = Some(now);
            std::mem::take(&mut self.since)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_one_line() {
        let mut minutes = Minutes::default();
        assert_eq!((minutes.count(), minutes.count(), minutes.count()), (Some(1), None, None));
        tokio::time::advance(GAP).await;
        assert_eq!((minutes.count(), minutes.count()), (Some(3), None));
    }

    #[tokio::test(start_paused = true)]
    async fn an_episode_begins_once() {
        let episodes = Episodes::default();
        assert!(episodes.begins() && !episodes.begins());
        tokio::time::advance(2 * GAP).await;
        assert!(episodes.begins());
    }
}
