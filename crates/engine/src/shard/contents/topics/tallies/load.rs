//! How far the tallies of a shard that was taken over are read.

use std::time::Duration;

use forebay_types::{Monotonic, TopicId};

use crate::shard::work::TalliesAfter;

/// The first pause after a read that failed. It doubles.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How far the tallies are read.
#[derive(Debug, Default)]
pub(in crate::shard) struct TallyLoad {
    /// The tallies behind this one are still to be read. `None`: all are there.
    pub after: Option<TalliesAfter>,
    /// Names the read under way, and how many it asks for.
    pub read: Option<(u64, usize)>,
    /// Nothing is read before.
    pub not_before: Monotonic,
    /// The pause after the last read, if that failed.
    pub pause: Duration,
}

impl TallyLoad {
    /// All are to be read. Without topics those of namespaces alone.
    pub fn begin(&mut self, has_topics: bool) {
        let namespaces = || TalliesAfter::Namespace("".into());
        self.after = Some(if has_topics { TalliesAfter::Topic(TopicId(0)) } else { namespaces() });
    }

    /// All are there.
    pub fn is_done(&self) -> bool {
        self.after.is_none()
    }

    /// When the next read begins.
    pub fn next_wake(&self) -> Option<Monotonic> {
        self.after.as_ref().and(self.read.is_none().then_some(self.not_before))
    }

    /// A read failed.
    pub fn failed(&mut self, at: Monotonic) {
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.not_before = at.plus(self.pause);
    }
}
