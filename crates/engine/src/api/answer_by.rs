//! Until when a call has to have an answer: its caller goes away then. What is known by that time is
//! answered, and of the rest nobody knows the outcome.
//!
//! A caller makes its calls within [`AnswerBy::around`]. The handle of the engine finds the time there, as it
//! finds a [`CommitWatch`](super::CommitWatch), so that no call has to name it.

use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    /// Not set: the caller waits as long as it takes.
    static ANSWER_BY: Instant;
}

/// When calls have to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerBy(pub Instant);

impl AnswerBy {
    /// Makes calls that have to be answered by then.
    pub fn around<T>(self, calls: impl Future<Output = T>) -> impl Future<Output = T> {
        ANSWER_BY.scope(self.0, calls)
    }

    /// The time within which this task makes calls.
    pub fn current() -> Option<Instant> {
        ANSWER_BY.try_with(|by| *by).ok()
    }

    /// How long that is from now.
    pub(crate) fn left() -> Option<Duration> {
        Self::current().map(|by| by.saturating_duration_since(Instant::now()))
    }
}
