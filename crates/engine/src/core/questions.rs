//! Questions of other nodes that this node's shards are read for.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::{api::RememberedKey, index::ShardIndex};

/// The most questions that are open at one time. Askers whose question is dropped try again.
const QUESTIONS_MAX: usize = 256;

/// The questions that have no answer yet, by read.
#[derive(Debug, Default)]
pub(crate) struct Questions(BTreeMap<u64, (ShardIndex, oneshot::Sender<Vec<RememberedKey>>)>);

impl Questions {
    /// A shard is to be read for an asker. Returns `false` if there are too many questions.
    pub fn ask(&mut self, read: u64, shard: ShardIndex, reply: oneshot::Sender<Vec<RememberedKey>>) -> bool {
        let has_room = self.0.len() < QUESTIONS_MAX;
        if has_room {
            self.0.insert(read, (shard, reply));
        }
        has_room
    }

    /// Whether a read is for an asker.
    pub fn is_open(&self, read: u64) -> bool {
        self.0.contains_key(&read)
    }

    /// The read has ended.
    pub fn take(&mut self, read: u64) -> Option<oneshot::Sender<Vec<RememberedKey>>> {
        self.0.remove(&read).map(|(_, reply)| reply)
    }

    /// The shard is lost: its askers get no answer.
    pub fn drop_shard(&mut self, shard: ShardIndex) {
        self.0.retain(|_, (of, _)| *of != shard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_questions_are_answered_at_one_time() {
        let mut questions = Questions::default();
        let mut ask = |read: usize| questions.ask(read as u64, ShardIndex(read % 2), oneshot::channel().0);
        assert!((0..QUESTIONS_MAX).all(&mut ask) && !ask(QUESTIONS_MAX));
        questions.drop_shard(ShardIndex(0));
        assert!(!questions.is_open(0) && questions.is_open(1) && questions.take(1).is_some());
        assert!(questions.ask(7_000, ShardIndex(0), oneshot::channel().0));
    }
}
