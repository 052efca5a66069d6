//! The turns of those who look at a shard. One at a time reads it, and all of them together for a part of the
//! time, so that a filter over millions of dead letters takes longer, and the queue does not.

use std::{
    num::NonZeroU32,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep},
};

/// Microseconds of each second in which a shard is read by all looks together. On two cores that the queue
/// shares with its database, reads without a pause took half of its throughput, and 150 ms a tenth and more.
const READ_MICROS_PER_SECOND: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
/// After a pause, so much of it at once: a page that is looked at now and then waits for nothing.
const READ_MICROS_AT_ONCE: NonZeroU32 = NonZeroU32::new(250_000).unwrap();

/// The turn that all looks at a shard share.
#[derive(Debug)]
pub(crate) struct LookTurn<C: Clock = DefaultClock> {
    /// Only who holds it may read: one at a time, so that they never take the connections that the queue
    /// needs.
    semaphore: Arc<Semaphore>,
    /// The time of reads.
    reads: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    /// The clock of these times.
    clock: C,
    /// The last read failed. That is in the log once, not for each look.
    pub failed: AtomicBool,
}

impl Default for LookTurn {
    fn default() -> Self {
        Self::with(DefaultClock::default())
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> LookTurn<C>
where
    C::Instant: Send + Sync,
{
    fn with(clock: C) -> Self {
        let quota = Quota::per_second(READ_MICROS_PER_SECOND).allow_burst(READ_MICROS_AT_ONCE);
        let reads = RateLimiter::direct_with_clock(quota, clock.clone());
        Self { semaphore: Arc::new(Semaphore::new(1)), reads, clock, failed: AtomicBool::new(false) }
    }

    /// Waits for the turn to read.
    pub async fn take(self: &Arc<Self>) -> Turn<C> {
        // The semaphore is never closed.
        let permit = self.semaphore.clone().acquire_owned().await.ok();
        Turn { shared: self.clone(), permit, began: Instant::now() }
    }

    /// Counts a read that took so long. If there were too many lately: how long nobody may read, after which
    /// it is to be counted again.
    fn rest_after(&self, read: Duration) -> Option<Duration> {
        let micros = u32::try_from(read.as_micros()).unwrap_or(u32::MAX);
        let micros = NonZeroU32::new(micros.min(READ_MICROS_AT_ONCE.get()))?;
        // A read is cut to what may be used at once, so the inner answer alone can refuse.
        let too_many = self.reads.check_n(micros).ok()?.err()?;
        Some(too_many.wait_time_from(self.clock.now()))
    }
}

/// The turn of somebody who reads. The next one has its turn once this one has ended.
pub(crate) struct Turn<C: Clock + Clone + Send + Sync + 'static = DefaultClock>
where
    C::Instant: Send + Sync,
{
    /// Where it is counted.
    shared: Arc<LookTurn<C>>,
    /// The turn.
    permit: Option<OwnedSemaphorePermit>,
    /// When it began.
    began: Instant,
}

impl<C: Clock + Clone + Send + Sync + 'static> Turn<C>
where
    C::Instant: Send + Sync,
{
    /// Ends the turn. The next one has it once the shard has had its rest.
    pub fn rest(self) {
        let Self { shared, permit, began } = self;
        let read = began.elapsed();
        let Some(mut rest) = shared.rest_after(read) else { return };
        tokio::spawn(async move {
            loop {
                sleep(rest).await;
                match shared.rest_after(read) {
                    Some(more) => rest = more,
                    None => break,
                }
            }
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use governor::clock::FakeRelativeClock;

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn reads_take_a_part_of_the_time() {
        let clock = FakeRelativeClock::default();
        let turn = LookTurn::with(clock.clone());
        assert_eq!(turn.rest_after(Duration::ZERO), None);
        assert_eq!([100, 150].map(|millis| turn.rest_after(millis * MILLI)), [None, None], "at once");
        let rest = turn.rest_after(10 * MILLI).expect("a rest");
        assert!(rest > 99 * MILLI && rest < 101 * MILLI, "{rest:?}: 10 ms of reads are those of 100 ms");
        clock.advance(rest);
        assert_eq!(turn.rest_after(10 * MILLI), None, "it is counted after its rest");
        // One that took for ever counts as what may be used at once.
        let rest = turn.rest_after(Duration::from_secs(60)).expect("a rest");
        assert!(rest < Duration::from_millis(2_600), "{rest:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_one_waits_for_the_rest() {
        let clock = FakeRelativeClock::default();
        let turn = Arc::new(LookTurn::with(clock.clone()));
        for _ in 0..2 {
            let read = turn.take().await;
            tokio::time::advance(200 * MILLI).await;
            read.rest();
        }
        assert!(turn.take().now_or_never().is_none(), "the shard has its rest");
        clock.advance(Duration::from_secs(3));
        let began = Instant::now();
        let _read = turn.take().await;
        assert!(began.elapsed() > 900 * MILLI, "150 ms that were too many are those of 1.5 s");
    }
}
