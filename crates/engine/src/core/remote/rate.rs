//! How often each tenant may do something.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use forebay_types::{Monotonic, Namespace};
use governor::{
    Quota, RateLimiter, clock::Clock, middleware::NoOpMiddleware, nanos::Nanos,
    state::keyed::HashMapStateStore,
};

use crate::messages::tenant_budget::payer;

/// Tenants that are remembered before those are forgotten that have done nothing lately.
const TENANTS_MAX: usize = 4_096;

/// The time of the event loop.
#[derive(Debug, Clone, Default)]
struct LoopClock(Arc<AtomicU64>);

impl Clock for LoopClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.load(Relaxed).into()
    }
}

/// One with any number of namespaces, where it is known who pays.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Tenant {
    /// The payer.
    Payer(Arc<str>),
    /// The namespace.
    Namespace(Namespace),
}

/// How often each tenant may do something.
#[derive(Debug)]
pub(super) struct TenantRate {
    /// The times of each.
    limiter: RateLimiter<Tenant, HashMapStateStore<Tenant>, LoopClock, NoOpMiddleware<Nanos>>,
    /// The clock of it.
    clock: LoopClock,
}

impl TenantRate {
    /// Allows each so many times in a second, and at once after a pause.
    pub fn new(per_second: NonZeroU32) -> Self {
        let (quota, clock) = (Quota::per_second(per_second), LoopClock::default());
        let limiter = RateLimiter::new(quota, HashMapStateStore::default(), clock.clone());
        Self { limiter, clock }
    }

    /// A tenant is about to do it: the payer of the task, or else the namespace. Returns whether it may.
    pub fn take(&self, namespace: &Namespace, at: Monotonic) -> bool {
        self.clock.0.store(at.since(Monotonic::default()).as_nanos() as u64, Relaxed);
        if self.limiter.len() >= TENANTS_MAX {
            self.limiter.retain_recent();
        }
        let tenant = payer().map_or_else(|| Tenant::Namespace(namespace.clone()), Tenant::Payer);
        self.limiter.check_key(&tenant).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::messages::tenant_budget::paid_at_once_by;

    const MOST: usize = 2_000;

    fn rate() -> TenantRate {
        TenantRate::new(NonZeroU32::new(MOST as u32).unwrap())
    }

    #[test]
    fn each_tenant_has_so_many_a_second() {
        let (rate, at) = (rate(), Monotonic::from_start(Duration::from_secs(5)));
        let taken = |namespace: &str, at| (0..5_000).filter(|_| rate.take(&namespace.into(), at)).count();
        assert_eq!([taken("a", at), taken("b", at), taken("a", at)], [MOST, MOST, 0]);
        assert_eq!(taken("a", at.plus(Duration::from_millis(500))), MOST / 2);
    }

    #[test]
    fn who_pays_in_many_namespaces_has_no_more() {
        let (rate, at) = (rate(), Monotonic::from_start(Duration::from_secs(5)));
        let taken = |payer: &str| {
            let take = |number: usize| rate.take(&format!("ns{}", number % 10).as_str().into(), at);
            paid_at_once_by(Some(payer.into()), || (0..5_000).filter(|number| take(*number)).count())
        };
        assert_eq!([taken("one"), taken("other"), taken("one")], [MOST, MOST, 0]);
    }

    #[test]
    fn tenants_that_did_nothing_lately_are_forgotten() {
        let rate = rate();
        for number in 0..20_000_u64 {
            let at = Monotonic::from_start(Duration::from_millis(number));
            assert!(rate.take(&number.to_string().as_str().into(), at));
        }
        assert!(rate.limiter.len() <= TENANTS_MAX, "{} are remembered", rate.limiter.len());
    }
}
