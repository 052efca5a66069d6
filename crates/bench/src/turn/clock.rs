//! The clock of a measurement: the CPU time of the measuring thread. A turn that is interrupted by another
//! process does not count as longer, so the figures are those of the engine and not of the machine's load.

use std::{future::Future, time::Duration};

use anyhow::Context as _;
use forebay_types::{Clock, Monotonic, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// Civil time at the start of a thread: any date does.
const EPOCH_MICROS: i64 = 1_700_000_000_000_000;

/// Reads the CPU time of the thread that asks. The engine and all of its tasks run on one thread.
#[derive(Debug, Default)]
pub struct CpuClock;

impl CpuClock {
    fn used() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
    }
}

impl Clock for CpuClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(EPOCH_MICROS).plus(Self::used())
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(Self::used())
    }
}

/// Measures on a thread of its own, whose CPU time is the clock.
pub async fn on_own_thread<M, F>(measurement: impl FnOnce() -> F + Send + 'static) -> anyhow::Result<M>
where
    M: Send + 'static,
    F: Future<Output = anyhow::Result<M>>,
{
    let measuring = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(measurement())
    });
    measuring.await.context("the measurement panicked")?
}
