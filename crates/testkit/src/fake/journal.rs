//! The sequence of all events of a run, with their true times and an optional trace.

use std::{
    fmt,
    hash::Hasher as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_types::Timestamp;
use tokio::time::Instant;

/// A moment of a run. Events are numbered, so two at the same time still have an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment {
    /// The event's number.
    pub event: u64,
    /// The true time, which no clock step changes.
    pub at: Timestamp,
}

/// The order of events over all shards, processes and clients of a run.
#[derive(Debug)]
pub struct Journal {
    /// When the run began.
    start: Instant,
    /// The true time at the beginning.
    base: Timestamp,
    /// The recorded events.
    written: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    /// The number of events.
    events: u64,
    /// A digest of all lines.
    hash: u64,
    /// The lines, if they are kept.
    lines: Option<Vec<String>>,
}

impl Journal {
    /// A journal that begins now. With `keep` it keeps the lines. Otherwise it keeps only their digest.
    pub fn new(base: Timestamp, keep: bool) -> Self {
        let written = JournalState { events: 0, hash: 0, lines: keep.then(Vec::new) };
        Self { start: Instant::now(), base, written: Mutex::new(written) }
    }

    /// The time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The true time.
    pub fn now(&self) -> Timestamp {
        self.base.plus(self.elapsed())
    }

    /// Records an event. Returns its moment.
    pub fn note(&self, what: fmt::Arguments<'_>) -> Moment {
        let at = self.now();
        let mut written = self.lock();
        written.events += 1;
        let event = written.events;
        let line = format!("{event:>5} {:>9.3}s {what}", self.elapsed().as_secs_f64());
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_u64(written.hash);
        hasher.write(line.as_bytes());
        written.hash = hasher.finish();
        if let Some(lines) = &mut written.lines {
            lines.push(line);
        }
        Moment { event, at }
    }

    /// The latest event.
    pub fn last(&self) -> Moment {
        Moment { event: self.lock().events, at: self.now() }
    }

    /// A digest of all lines. Two runs with the same digest did the same.
    pub fn hash(&self) -> u64 {
        self.lock().hash
    }

    /// The lines, if they are kept.
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.clone().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
