//! A simulated machine's clocks: the monotonic one is the runtime's paused time, the other may step.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use forebay_types::{Clock, Monotonic, Timestamp};

use crate::fake::Journal;

/// The clocks of one simulated machine.
#[derive(Debug)]
pub struct SimClock {
    journal: Arc<Journal>,
    offset: AtomicI64,
}

impl SimClock {
    /// Clocks that are right.
    pub fn new(journal: Arc<Journal>, offset_micros: i64) -> Self {
        Self { journal, offset: AtomicI64::new(offset_micros) }
    }

    /// The wall clock is this far from the true time from now on.
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
        // A machine that has been up for a day: no clock starts at zero.
        Monotonic::from_start(std::time::Duration::from_secs(86_400) + self.journal.elapsed())
    }
}
