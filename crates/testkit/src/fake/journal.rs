//! What happened, in order: the one sequence of events of a run, its true time, and its trace.

use std::{
    fmt,
    hash::Hasher as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_types::Timestamp;
use tokio::time::Instant;

/// A moment of a run: events are numbered through, so that two at the same time still have an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment {
    /// The event's number.
    pub event: u64,
    /// The true time: no step of any clock changes it.
    pub at: Timestamp,
}

/// The order of events over all shards, processes and clients of a run.
#[derive(Debug)]
pub struct Journal {
    start: Instant,
    base: Timestamp,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    events: u64,
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Journal {
    /// Begins now. With `keep`, the lines are kept for people to read; else only their hash is.
    pub fn new(base: Timestamp, keep: bool) -> Self {
        let written = Written { events: 0, hash: 0, lines: keep.then(Vec::new) };
        Self { start: Instant::now(), base, written: Mutex::new(written) }
    }

    /// The span since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The true time.
    pub fn now(&self) -> Timestamp {
        self.base.plus(self.elapsed())
    }

    /// Writes an event down and says when it was.
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

    /// A digest of every line: two runs with the same digest did the same.
    pub fn hash(&self) -> u64 {
        self.lock().hash
    }

    /// The lines, if they were kept.
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.clone().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
