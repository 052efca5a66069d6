//! Whether a server works, as far as calls have shown.

use std::time::Duration;

use tokio::time::Instant;

/// How long a server is avoided after its first failure, at most.
const AVOIDED_FIRST: Duration = Duration::from_millis(200);
/// How long a server is avoided at most.
const AVOIDED_MAX: Duration = Duration::from_secs(5);

/// Whether a server works. After a failure it is avoided for a while, then one call tries it again.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Failures since the last success; the time for which the server is avoided grows with them.
    failures: u32,
    /// When the last failure was seen.
    failed_at: Option<Instant>,
    /// Until when other servers are preferred.
    avoided_until: Option<Instant>,
}

impl Health {
    /// Until when the server is avoided; `None`: it is not.
    pub(super) fn avoided_until(&self, now: Instant) -> Option<Instant> {
        self.avoided_until.filter(|until| *until > now)
    }

    /// A call is about to be sent. If the last one failed, the others wait for how this one fares: a server
    /// that does not answer would otherwise cost each of them a timeout.
    pub(super) fn chosen(&mut self, now: Instant) {
        if self.failures > 0 {
            self.avoided_until = Some(now + longest(self.failures));
        }
    }

    /// A call that began at `began` was answered. An answer to an older call says nothing: a server that
    /// drains still answers those.
    pub(super) fn works(&mut self, began: Instant) {
        if self.failed_at.is_none_or(|failed_at| began >= failed_at) {
            *self = Self::default();
        }
    }

    /// A call that began at `began` found that the server does not work. Calls that failed together count
    /// once. `jitter` shortens a duration at random, so that clients do not come back together. Returns
    /// whether the server worked before.
    pub(super) fn failed(
        &mut self,
        began: Instant,
        now: Instant,
        jitter: impl Fn(Duration) -> Duration,
    ) -> bool {
        if self.failed_at.is_some_and(|failed_at| began < failed_at) {
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(now);
        self.avoided_until = Some(now + jitter(longest(self.failures)));
        self.failures == 1
    }
}

/// How long a server is avoided after so many failures, at most.
fn longest(failures: u32) -> Duration {
    let factor = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    AVOIDED_FIRST.saturating_mul(factor).min(AVOIDED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn failed_times(times: u32) -> (Health, Instant) {
        let (mut health, mut now) = (Health::default(), Instant::now());
        for _ in 0..times {
            now = health.avoided_until(now).unwrap_or(now) + MS;
            health.failed(now, now, |longest| longest);
        }
        (health, now)
    }

    #[test]
    fn a_failure_is_avoided_for_longer_each_time_up_to_a_maximum() {
        for (times, ms) in [(1, 200), (2, 400), (3, 800), (5, 3_200), (6, 5_000), (60, 5_000)] {
            let (health, now) = failed_times(times);
            assert_eq!(health.avoided_until(now), Some(now + ms * MS), "{times}");
            assert_eq!(health.avoided_until(now + ms * MS), None);
        }
    }

    #[test]
    fn an_answer_to_a_call_since_the_failure_ends_it() {
        let (mut health, now) = failed_times(3);
        health.works(now - MS);
        assert!(health.avoided_until(now).is_some(), "the call was older");
        health.works(now + MS);
        assert_eq!(health.avoided_until(now + MS), None);
        assert!(health.failed(now + 2 * MS, now + 2 * MS, |longest| longest), "it worked before");
        assert_eq!(health.avoided_until(now + 2 * MS), Some(now + 202 * MS));
    }

    #[test]
    fn calls_that_fail_together_count_once() {
        let (mut health, now) = failed_times(1);
        assert!(!health.failed(now - MS, now + MS, |longest| longest));
        assert_eq!(health.avoided_until(now), Some(now + 200 * MS));
    }

    #[test]
    fn one_call_tries_a_failed_server_while_others_avoid_it() {
        let (mut health, now) = failed_times(1);
        let later = now + 200 * MS;
        assert_eq!(health.avoided_until(later), None);
        health.chosen(later);
        assert_eq!(health.avoided_until(later), Some(later + 200 * MS));
        health.works(later);
        assert_eq!(health.avoided_until(later), None);
    }
}
