//! Finds out where items are whose deliveries are over.

use forebay_store::ItemLocation;
use forebay_types::{Refusal, Seq};

use crate::shard::{OwnedShard, work::SettleRequest};

impl OwnedShard {
    /// A settlement waits until its item is located. Beyond what may wait it is returned, with why.
    pub fn wait_for_location(&mut self, request: SettleRequest) -> Result<(), Box<(SettleRequest, Refusal)>> {
        self.intake.locates.wait(self.id, request)
    }

    /// The items that the next read, named `read`, asks for. `None`: one is under way, or nobody waits.
    pub fn begin_locate(&mut self, read: u64) -> Option<Vec<Seq>> {
        self.intake.locates.begin(read)
    }

    /// A read ended. Returns those that it was for, in the order of its items.
    pub fn end_locate(&mut self, read: u64) -> Vec<SettleRequest> {
        self.intake.locates.end(read)
    }

    /// Holds the result of a read, which is not told before the batch in flight is resolved.
    pub fn hold_located(&mut self, requests: Vec<SettleRequest>, locations: Vec<ItemLocation>) {
        self.intake.locates.hold(requests, locations);
    }

    /// The batch in flight is resolved: what can be told now.
    pub fn take_located(&mut self, committed: bool) -> Option<(Vec<SettleRequest>, Vec<ItemLocation>)> {
        self.intake.locates.resolved(committed)
    }
}
