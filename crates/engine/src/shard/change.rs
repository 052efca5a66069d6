//! Changes of single items: what is asked of the shard, what it reads, and what a batch did of them.

use forebay_types::{Refusal, Seq};

use super::{
    OwnedShard,
    in_flight::{OperationEffect, UpdatedItem},
    work::{ChangeRequest, FoundItem},
};
use crate::planted::{Bug, on};

impl OwnedShard {
    /// A change waits for its item to be read. Beyond what may wait it is returned, with why.
    pub fn ask_change(&mut self, request: ChangeRequest) -> Result<(), Box<(ChangeRequest, Refusal)>> {
        self.changes.wait(self.id, request)
    }

    /// The items that the next read for changes, named `read`, asks for.
    pub fn begin_change(&mut self, read: u64) -> Option<Vec<Seq>> {
        // As for an operation.
        self.has_tallies().then(|| self.changes.begin(read)).flatten()
    }

    /// A read for changes ended; `None` if it failed. Then those are returned that it was for.
    pub fn change_read(&mut self, read: u64, items: Option<Vec<FoundItem>>) -> Vec<ChangeRequest> {
        self.disk.set_fertile();
        self.changes.found(read, items)
    }

    /// Applies a committed effect of an operation, or of a change of an item, in memory.
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
            OperationEffect::Updated(updated) => {
                let UpdatedItem { topic, before, ready, .. } = *updated;
                self.invalidate(topic, before.seq);
                self.topics.mark_changed(topic);
                if let Some((key, item)) = ready {
                    let key = if on(Bug::UpdateKeepsPlace) { before } else { key };
                    self.topics.with_window(topic, |window| window.add(key, item));
                }
            }
        }
    }

    /// It did not happen.
    pub(super) fn undo_effect(&mut self, effect: OperationEffect) {
        let (topic, key, windowed) = match effect {
            OperationEffect::Purged(topic, key, windowed) => (topic, key, windowed),
            OperationEffect::Updated(updated) => (updated.topic, updated.before, updated.windowed),
            OperationEffect::DeadLetterGone(_) | OperationEffect::Redriven(..) => return,
        };
        if let Some(item) = windowed {
            self.topics.with_window(topic, |window| window.add(key, item));
        }
    }
}
