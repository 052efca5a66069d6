//! The commits that a call waits for, told to its caller: a trace says with them where the time went.
//!
//! A caller who wants to know makes its calls within [`CommitWatch::around`]. The handle of the engine finds
//! the watch there and puts it beside the sender of the answer, so that no call has to name it. Without one,
//! a member's answer costs one look at an `Option`.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use forebay_types::{ShardId, Timestamp};

/// The most commits that a watch remembers. A call of more shards waits for others as well.
const SEEN_COMMITS_MAX: usize = 8;

tokio::task_local! {
    /// Not set: nobody wants to know.
    static WATCH: CommitWatch;
}

/// Learns which commits the calls waited for that are made within it.
#[derive(Debug, Clone, Default)]
pub struct CommitWatch(Arc<Mutex<Vec<SeenCommit>>>);

/// A commit that a call waited for. Hundreds of calls may have waited for the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenCommit {
    /// Of this shard.
    pub shard: ShardId,
    /// The epoch in which its owner made it.
    pub epoch: u64,
    /// Its number in that epoch's line of batches.
    pub batch: u64,
    /// How many rows it wrote.
    pub rows: usize,
    /// When it was known to have happened, by the wall clock of this node.
    pub ended_at: Timestamp,
    /// How long it took, from when its batch was handed to the shard's task.
    pub took: Duration,
}

impl CommitWatch {
    /// Makes calls whose commits it learns of. It does not see those of other tasks.
    pub fn around<T>(&self, calls: impl Future<Output = T>) -> impl Future<Output = T> {
        WATCH.scope(self.clone(), calls)
    }

    /// The commits that it has seen so far: the first eight, in the order in which they ended.
    pub fn commits(&self) -> Vec<SeenCommit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one within which this task makes calls.
    pub(crate) fn current() -> Option<Self> {
        WATCH.try_with(Clone::clone).ok()
    }

    /// A member of its call was in a commit.
    pub(crate) fn saw(&self, commit: &SeenCommit) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < SEEN_COMMITS_MAX && seen.last() != Some(commit) {
            seen.push(*commit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(batch: u64) -> SeenCommit {
        let (ended_at, took) = (Timestamp::from_micros(5), Duration::from_millis(2));
        SeenCommit { shard: ShardId(1), epoch: 2, batch, rows: 3, ended_at, took }
    }

    #[tokio::test]
    async fn a_watch_is_found_by_the_calls_within_it_alone() {
        let watch = CommitWatch::default();
        assert!(CommitWatch::current().is_none());
        watch.around(async { CommitWatch::current().unwrap().saw(&commit(1)) }).await;
        assert!(CommitWatch::current().is_none());
        assert_eq!(watch.commits(), [commit(1)]);
    }

    #[test]
    fn a_commit_is_remembered_once_and_a_few_are() {
        let watch = CommitWatch::default();
        for batch in (0..20).flat_map(|batch| [batch; 100]) {
            watch.saw(&commit(batch));
        }
        let seen: Vec<u64> = watch.commits().iter().map(|commit| commit.batch).collect();
        assert_eq!(seen, (0..SEEN_COMMITS_MAX as u64).collect::<Vec<_>>());
    }
}
