//! Changes of single items: what is asked of the shard, and what it reads.

use forebay_types::{Refusal, Seq};

use crate::shard::{
    OwnedShard,
    work::{ChangeRequest, FoundItem},
};

impl OwnedShard {
    /// A change waits for its item to be read. Beyond what may wait it is returned, with why.
    pub fn ask_change(&mut self, request: ChangeRequest) -> Result<(), Box<(ChangeRequest, Refusal)>> {
        self.intake.changes.wait(self.id, request)
    }

    /// The items that the next read for changes, named `read`, asks for.
    pub fn begin_change(&mut self, read: u64) -> Option<Vec<Seq>> {
        // As for an operation.
        self.has_tallies().then(|| self.intake.changes.begin(read)).flatten()
    }

    /// A read for changes ended; `None` if it failed. Then those are returned that it was for.
    pub fn change_read(&mut self, read: u64, items: Option<Vec<FoundItem>>) -> Vec<ChangeRequest> {
        self.commit.disk.set_fertile();
        self.intake.changes.found(read, items)
    }
}
