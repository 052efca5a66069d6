//! How many calls may come in a second: over a connection, and for a namespace once that is known.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use forebay_types::{Namespace, Refusal};
use governor::{
    NotUntil, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed, keyed::HashMapStateStore},
};

use crate::rpc::rate_limited;

/// Namespaces that are remembered in any case.
const NAMESPACES_MIN: usize = 4_096;

/// The calls of a connection. After a pause, those of a second may come at once.
#[derive(Debug)]
pub struct ConnectionRate<C: Clock = DefaultClock> {
    /// When calls came.
    limiter: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    /// The clock of that.
    clock: C,
}

impl ConnectionRate {
    /// None has come.
    pub fn new(per_second: NonZeroU32) -> Self {
        Self::with(per_second, DefaultClock::default())
    }
}

impl<C: Clock + Clone> ConnectionRate<C> {
    fn with(per_second: NonZeroU32, clock: C) -> Self {
        let limiter = RateLimiter::direct_with_clock(Quota::per_second(per_second), clock.clone());
        Self { limiter, clock }
    }

    /// Lets a call come, or refuses it.
    pub fn take(&self) -> Result<(), Refusal> {
        let over = |until: NotUntil<C::Instant>| {
            let message = "more calls came over this connection than it may make in a second";
            rate_limited("limits.call_rate_per_connection", message, until.wait_time_from(self.clock.now()))
        };
        self.limiter.check().map_err(over)
    }
}

/// The calls of each namespace. After a pause, those of a second may come at once.
#[derive(Debug)]
pub struct NamespaceRates<C: Clock = DefaultClock> {
    /// When calls came.
    limiter: RateLimiter<Namespace, HashMapStateStore<Namespace>, C, NoOpMiddleware<C::Instant>>,
    /// The clock of that.
    clock: C,
    /// From so many on, namespaces are forgotten of which no call has come lately.
    forgets_from: AtomicUsize,
}

impl NamespaceRates {
    /// None has come.
    pub fn new(per_second: NonZeroU32) -> Self {
        Self::with(per_second, DefaultClock::default())
    }
}

impl<C: Clock + Clone> NamespaceRates<C> {
    fn with(per_second: NonZeroU32, clock: C) -> Self {
        let quota = Quota::per_second(per_second);
        let limiter = RateLimiter::new(quota, HashMapStateStore::default(), clock.clone());
        Self { limiter, clock, forgets_from: AtomicUsize::new(NAMESPACES_MIN) }
    }

    /// Lets a call for this namespace come, or refuses it.
    pub fn take(&self, namespace: &Namespace) -> Result<(), Refusal> {
        if self.limiter.len() >= self.forgets_from.load(Relaxed) {
            self.limiter.retain_recent();
            // Twice those that stay: to look through all costs a call no more than to be counted.
            self.forgets_from.store(NAMESPACES_MIN.max(2 * self.limiter.len()), Relaxed);
        }
        let over = |until: NotUntil<C::Instant>| {
            let message = "more calls came for this namespace than it may have in a second";
            rate_limited("limits.call_rate_per_namespace", message, until.wait_time_from(self.clock.now()))
        };
        self.limiter.check_key(namespace).map_err(over)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_types::Reason;
    use governor::clock::FakeRelativeClock;

    use super::*;

    const TEN: NonZeroU32 = NonZeroU32::new(10).unwrap();

    #[test]
    fn a_refused_call_comes_after_the_time_that_is_named() {
        let clock = FakeRelativeClock::default();
        let rate = ConnectionRate::with(TEN, clock.clone());
        assert_eq!((0..50).filter(|_| rate.take().is_ok()).count(), 10, "those of a second come at once");
        let refusal = rate.take().unwrap_err();
        assert_eq!(
            (refusal.reason, refusal.subject),
            (Reason::RateLimited, Some("limits.call_rate_per_connection"))
        );
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(100)));
        clock.advance(Duration::from_millis(99));
        assert!(rate.take().is_err());
        clock.advance(Duration::from_millis(1));
        assert!(rate.take().is_ok() && rate.take().is_err());
    }

    #[test]
    fn each_namespace_has_its_own() {
        let clock = FakeRelativeClock::default();
        let rates = NamespaceRates::with(TEN, clock.clone());
        let taken = |name: &str| (0..50).filter(|_| rates.take(&name.into()).is_ok()).count();
        assert_eq!([taken("a"), taken("b"), taken("a")], [10, 10, 0]);
        clock.advance(Duration::from_millis(500));
        assert_eq!(taken("a"), 5);
        assert_eq!(rates.take(&"a".into()).unwrap_err().subject, Some("limits.call_rate_per_namespace"));
    }

    #[test]
    fn namespaces_of_which_no_call_came_lately_are_forgotten() {
        let clock = FakeRelativeClock::default();
        let rates = NamespaceRates::with(TEN, clock.clone());
        for number in 0..20_000 {
            clock.advance(Duration::from_millis(1));
            assert!(rates.take(&number.to_string().as_str().into()).is_ok());
        }
        assert!(rates.limiter.len() <= NAMESPACES_MIN, "{} are remembered", rates.limiter.len());
    }

    #[test]
    fn many_namespaces_at_once_are_not_looked_through_at_each_call() {
        let rates = NamespaceRates::with(TEN, FakeRelativeClock::default());
        let names = |from: usize, to: usize| (from..to).map(|number| Namespace::from(&*number.to_string()));
        names(0, 3 * NAMESPACES_MIN).for_each(|name| assert!(rates.take(&name).is_ok()));
        assert_eq!(rates.limiter.len(), 3 * NAMESPACES_MIN, "none of them may be forgotten");
        assert_eq!(rates.forgets_from.load(Relaxed), 4 * NAMESPACES_MIN);
    }
}
