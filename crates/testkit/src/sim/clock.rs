//! A simulated machine's clocks. The monotonic clock is the runtime's paused time. The wall clock may step.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use forebay_types::{Clock, Monotonic, Timestamp};

use crate::fake::Journal;

/// The clocks of one simulated machine.
#[derive(Debug)]
pub struct SimClock {
    /// Has the true time.
    journal: Arc<Journal>,
    /// How far the wall clock is from the true time, in microseconds.
    offset: AtomicI64,
}

impl SimClock {
    /// Clocks with an offset of the wall clock.
    pub fn new(journal: Arc<Journal>, offset_micros: i64) -> Self {
        Self { journal, offset: AtomicI64::new(offset_micros) }
    }

    /// Sets how far the wall clock is from the true time.
    pub fn set_offset(&self, micros: i64) {
        self.offset.store(micros, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn wall(&self) -> Timestamp {
        let micros = self.journal.now().as_micros() + self.offset.load(Ordering::Relaxed);
        Timestamp::from_micros(micros)
    }

    fn monotonic(&self) -> Monotonic {
        // The machine has been up for a day, so that the clock does not start at zero.
        Monotonic::from_start(std::time::Duration::from_secs(86_400) + self.journal.elapsed())
    }
}
