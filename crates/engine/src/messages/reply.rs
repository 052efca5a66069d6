//! The sender of a call's answer.

use std::time::Duration;

use forebay_types::{Reason, Refusal};
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::api::{AnswerBy, CommitWatch, RETRY_AFTER, SeenCommit};

/// Sends the answer of a call, and tells its caller of commits before, if it wants to know.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    /// Sends the answer.
    sender: Sender<Result<T, Refusal>>,
    /// Receives the commits that the call waits for.
    watch: Option<CommitWatch>,
    /// How long the caller waits, if it says so.
    time_left: Option<Duration>,
}

/// Waits for an answer.
pub(crate) async fn received<T>(answer: &mut Receiver<Result<T, Refusal>>) -> Result<T, Refusal> {
    // The engine ended with the call in hand: nobody knows how far it got.
    answer.await.unwrap_or_else(|_| {
        let message = "the node stopped before it could answer: the call may or may not have taken effect";
        Err(Refusal::new(Reason::OutcomeUnknown, message).retry_after(RETRY_AFTER))
    })
}

impl<T> Reply<T> {
    /// One, and where its answer comes out. The caller's watch, and how long it waits,
    /// are those of this task.
    pub fn channel() -> (Self, Receiver<Result<T, Refusal>>) {
        let (sender, answer) = oneshot::channel();
        (Self { sender, watch: CommitWatch::current(), time_left: AnswerBy::left() }, answer)
    }

    /// Answers. If the caller is gone, nobody reads it, and it is dropped.
    pub fn send(self, answer: Result<T, Refusal>) {
        let _ = self.sender.send(answer);
    }

    /// How long the caller waited from the moment when it asked. `None`: as long as it takes.
    pub fn time_left(&self) -> Option<Duration> {
        self.time_left
    }

    /// Whether the caller is gone.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// The call was part of a commit.
    pub fn saw(&self, commit: Option<&SeenCommit>) {
        if let (Some(watch), Some(commit)) = (&self.watch, commit) {
            watch.saw(commit);
        }
    }
}
