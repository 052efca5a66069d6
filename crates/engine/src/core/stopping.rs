//! Whether the engine stops, and who waits for that.

use std::vec;

use tokio::sync::oneshot;

/// The state of an orderly stop.
#[derive(Debug, Default)]
pub(crate) enum StopState {
    /// The engine runs.
    #[default]
    No,
    /// Accepted work is committed and answered.
    Draining {
        /// Receivers of the word that it has stopped.
        waiting: Vec<oneshot::Sender<()>>,
        /// Polls that waited when the stop began, and are not answered yet.
        polls: vec::IntoIter<u64>,
    },
    /// The shards are given up.
    Releasing(Vec<oneshot::Sender<()>>),
}

impl StopState {
    /// Begins to stop, or waits for the stop that has begun. `polls`: those that wait now.
    pub fn begin(&mut self, reply: oneshot::Sender<()>, polls: impl FnOnce() -> Vec<u64>) {
        match self {
            Self::No => *self = Self::Draining { waiting: vec![reply], polls: polls().into_iter() },
            Self::Draining { waiting, .. } | Self::Releasing(waiting) => waiting.push(reply),
        }
    }

    /// Takes the next poll that is to be answered.
    pub fn next_poll(&mut self) -> Option<u64> {
        if let Self::Draining { polls, .. } = self { polls.next() } else { None }
    }

    /// Polls are to be answered.
    pub fn has_polls(&self) -> bool {
        matches!(self, Self::Draining { polls, .. } if polls.len() > 0)
    }

    /// The shards were told to release.
    pub fn begin_releasing(&mut self) {
        if let Self::Draining { waiting, .. } = self {
            *self = Self::Releasing(std::mem::take(waiting));
        }
    }

    /// No more work is taken.
    pub fn is_stopping(&self) -> bool {
        !matches!(self, Self::No)
    }

    /// The shards are given up.
    pub fn is_releasing(&self) -> bool {
        matches!(self, Self::Releasing(_))
    }

    /// Takes those who wait for the end.
    pub fn take_waiting(&mut self) -> Vec<oneshot::Sender<()>> {
        match self {
            Self::No => Vec::new(),
            Self::Draining { waiting, .. } | Self::Releasing(waiting) => std::mem::take(waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_ask_for_a_stop_are_told_of_its_end() {
        let mut stopping = StopState::default();
        assert!(!stopping.is_stopping() && !stopping.is_releasing());
        let mut ends = Vec::new();
        let mut begin = |stopping: &mut StopState| {
            let (reply, end) = oneshot::channel();
            stopping.begin(reply, || vec![1, 2]);
            ends.push(end);
        };
        begin(&mut stopping);
        assert!(stopping.has_polls() && stopping.next_poll().is_some());
        begin(&mut stopping);
        assert!(stopping.next_poll().is_some() && stopping.next_poll().is_none() && !stopping.has_polls());
        assert!(stopping.is_stopping() && !stopping.is_releasing());
        stopping.begin_releasing();
        stopping.begin_releasing();
        begin(&mut stopping);
        assert!(stopping.is_stopping() && stopping.is_releasing());
        stopping.take_waiting().into_iter().for_each(|reply| reply.send(()).unwrap());
        assert!(ends.iter_mut().all(|end| end.try_recv().is_ok()));
    }

    #[test]
    fn shards_are_not_given_up_by_an_engine_that_runs() {
        let mut stopping = StopState::default();
        stopping.begin_releasing();
        assert!(!stopping.is_stopping() && stopping.take_waiting().is_empty());
    }
}
