//! Changes of single items: what is asked of the shard, what it reads, and what a batch did of them.

use forebay_types::{Refusal, Seq};

use super::{
    OwnedShard,
    in_flight::OperationEffect,
    work::{ChangeRequest, FoundItem},
};

impl OwnedShard {
    /// A change waits for its item to be read. Beyond what may wait it is returned, with why.
    pub fn ask_change(&mut self, request: ChangeRequest) -> Result<(), Box<(ChangeRequest, Refusal)>> {
        self.changes.wait(self.id, request)
    }

    /// The items that the next read for changes, named `read`, asks for.
    pub fn begin_change(&mut self, read: u64) -> Option<Vec<Seq>> {
        self.changes.begin(read)
    }

    /// A read for changes ended; `None` if it failed. Then those are returned that it was for.
    pub fn change_read(&mut self, read: u64, items: Option<Vec<FoundItem>>) -> Vec<ChangeRequest> {
        self.disk.set_fertile();
        self.changes.found(read, items)
    }

    /// What an operation, or a change of an item, does in memory was committed.
    pub(super) fn apply_effect(&mut self, effect: OperationEffect) {
        match effect {
            OperationEffect::Purged(topic, key, _) => {
                self.invalidate(topic, key.seq);
                self.topics.mark_changed(topic);
            }
            OperationEffect::DeadLetterGone(seq) => {
                self.sweeps.invalidate(seq);
                self.operations.invalidate(seq);
                self.changes.invalidate(seq);
            }
            OperationEffect::Redriven(topic, key, item) => {
                self.invalidate(topic, key.seq);
                self.topics.with_window(topic, |window| window.add(key, item));
            }
        }
    }

    /// It did not happen.
    pub(super) fn undo_effect(&mut self, effect: OperationEffect) {
        if let OperationEffect::Purged(topic, key, Some(item)) = effect {
            self.topics.with_window(topic, |window| window.add(key, item));
        }
    }
}
