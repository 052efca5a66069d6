//! Reads what can be read of a shard that is about to be handed over, while its owner still serves it. That
//! one waits until this is done (`ownership/mod.rs::sights`, `prepared`), so the shard has no owner only for
//! the rest.
//!
//! If the read fails, or takes too long, the take-over reads everything. A read is used only if the owner
//! that was seen at its begin is the one whose shard is taken over: nobody else has written in between.

use std::time::Duration;

use forebay_store::{Observation, ReadAhead};
use forebay_types::{Incarnation, Monotonic};
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::{ShardTask, claimed::EndedOnDrop};
use crate::{api::TaskName, shard::image::ExpectedTopics};

/// An owner does not wait longer for a read to end. One that leaves has 5 s for all of its shards.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// How long rows that were read ahead are kept. After that the shard was not handed over after all.
const KEPT: Duration = Duration::from_secs(30);

/// The rows that were read ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// For the load.
    pub read: ReadAhead,
    /// For the shard's memory.
    pub topics: ExpectedTopics,
}

/// A read that has begun.
pub(super) struct PendingRead {
    /// Epoch and name of the owner at that time.
    owner: (u64, Incarnation),
    /// When it began.
    began: Monotonic,
    /// Tells what was read. Nothing comes if that failed.
    result: oneshot::Receiver<Ahead>,
    /// The rows that came.
    read: Option<Ahead>,
    /// It has ended, or takes too long.
    ended: bool,
    /// Reads.
    _task: EndedOnDrop,
}

impl PendingRead {
    /// Begins to read the shard of the owner that was seen.
    pub fn begin(task: &ShardTask, seen: &Observation) -> Self {
        let (sender, result) = oneshot::channel();
        let (id, shard, room) = (task.id, task.shard.clone(), task.room.reads_ahead.clone());
        let reading = async move {
            // The room is never closed.
            let _room = room.acquire().await;
            match shard.read_ahead().await {
                Ok(read) => {
                    let topics = ExpectedTopics::of(&read).await;
                    let _ = sender.send(Ahead { read, topics });
                }
                Err(error) => {
                    tracing::info!(shard.id = id.0, %error, "shard {id} could not be read ahead: {error}");
                }
            }
        };
        Self {
            owner: (seen.epoch, seen.incarnation),
            began: task.clock.monotonic(),
            result,
            read: None,
            ended: false,
            _task: EndedOnDrop(task.tasks.start(TaskName::ReadAhead(id), Box::pin(reading))),
        }
    }

    /// Whether the owner need not wait any more.
    pub fn has_ended(&mut self, now: Monotonic) -> bool {
        if !self.ended {
            match self.result.try_recv() {
                Ok(read) => (self.read, self.ended) = (Some(read), true),
                Err(TryRecvError::Closed) => self.ended = true,
                Err(TryRecvError::Empty) => {}
            }
        }
        self.ended || now.since(self.began) >= READ_TIMEOUT
    }

    /// The shard was not handed over in time: what was read is of no use any more.
    pub fn is_stale(&self, now: Monotonic) -> bool {
        now.since(self.began) >= KEPT
    }

    /// The rows that were read, for a take-over of the shard as it was seen.
    pub fn finish(mut self, seen: &Observation, now: Monotonic) -> Ahead {
        self.has_ended(now);
        let same = self.owner == (seen.epoch, seen.incarnation);
        self.read.filter(|_| same).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::{TopicCounts, TopicRow};
    use forebay_types::{TopicId, TopicName};

    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(millis))
    }

    fn owned_by(owner: u8) -> Observation {
        Observation { epoch: 3, incarnation: Incarnation([owner; 16]), ..Observation::default() }
    }

    fn reading(owner: u8) -> (oneshot::Sender<Ahead>, PendingRead) {
        let (sender, result) = oneshot::channel();
        let Observation { epoch, incarnation, .. } = owned_by(owner);
        let task = EndedOnDrop(tokio::spawn(std::future::pending::<()>()).abort_handle());
        let reading = PendingRead {
            owner: (epoch, incarnation),
            began: at(0),
            result,
            read: None,
            ended: false,
            _task: task,
        };
        (sender, reading)
    }

    fn one_topic() -> Ahead {
        let name = TopicName::new("ns", "t");
        let row = TopicRow { id: TopicId(1), name, counts: TopicCounts::default() };
        Ahead { read: ReadAhead::hints(vec![row]), topics: ExpectedTopics::default() }
    }

    #[tokio::test]
    async fn what_was_read_counts_under_the_owner_that_was_seen_alone() {
        for (taken_from, expected) in [(1, 1), (2, 0)] {
            let (sender, mut reading) = reading(1);
            assert!(!reading.has_ended(at(0)));
            assert!(sender.send(one_topic()).is_ok() && reading.has_ended(at(0)));
            assert_eq!(reading.finish(&owned_by(taken_from), at(0)).read.topics().len(), expected);
        }
    }

    #[tokio::test]
    async fn an_owner_waits_for_a_read_for_a_while_and_not_for_one_that_failed() {
        let (sender, mut slow) = reading(1);
        assert!(!slow.has_ended(at(2_999)) && slow.has_ended(at(3_000)));
        assert!(sender.send(one_topic()).is_ok() && !slow.is_stale(at(29_999)) && slow.is_stale(at(30_000)));
        assert_eq!(slow.finish(&owned_by(1), at(6_000)).read.topics().len(), 1, "it came late, and in time");
        let (sender, mut failed) = reading(1);
        drop(sender);
        assert!(failed.has_ended(at(0)));
        assert_eq!(failed.finish(&owned_by(1), at(0)).read.topics().len(), 0);
    }
}
