//! When a consumer ends because there is nothing more to do. That its servers have no items is what they say:
//! the time that passes proves nothing, as an answer with items may be on its way.

use std::time::Duration;

use tokio::time::Instant;

/// For how long nothing came, and nothing ran.
#[derive(Debug)]
pub(super) struct Idle {
    /// The consumer ends after so long. `None`: never.
    span: Option<Duration>,
    /// Nothing came or ended since then.
    since: Instant,
}

impl Idle {
    /// As of now.
    pub(super) fn new(span: Option<Duration>) -> Self {
        Self { span, since: Instant::now() }
    }

    /// Items came, or a handler has ended.
    pub(super) fn stir(&mut self) {
        self.since = Instant::now();
    }

    /// Whether it has been so for long enough.
    pub(super) fn is_long(&self) -> bool {
        self.ends_at().is_some_and(|at| Instant::now() >= at)
    }

    /// When it will have been so for long enough.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        Some(self.since + self.span?)
    }

    /// How long a poll may wait, so that its answer says in time that there is nothing.
    pub(super) fn shorten(&self, wait: Duration) -> Duration {
        self.span.map_or(wait, |span| wait.min(span))
    }
}
