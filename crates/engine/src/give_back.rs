//! Takes back what was leased and not handed over: leases are released, at-most-once items are inserted again.

use std::time::Duration;

use forebay_types::{ItemId, Receipt};

use crate::{
    NackAction,
    core::Core,
    form::Leased,
    handover::Undo,
    op::{LeasePart, Picked, Settle, SettleKind},
};

impl Core {
    /// Leases that were committed for a poll that has been answered, or has gone away.
    pub fn take_back(&mut self, place: usize, part: LeasePart, handed: &[Leased]) {
        let (id, life) = (self.shards[place].id, self.shards[place].life);
        for (picked, leased) in part.picked.into_iter().zip(handed) {
            match leased {
                Leased::Expired => {}
                Leased::Taken => self.restore(place, life, picked),
                Leased::Lease { delivery, nonce, .. } => {
                    let item = ItemId { shard: id, seq: picked.key.seq };
                    self.release(place, Receipt { item, delivery: *delivery, nonce: *nonce });
                }
            }
        }
    }

    /// Takes back deliveries whose answer nobody took.
    pub fn undo(&mut self, undo: Vec<Undo>) {
        for undo in undo {
            match undo {
                Undo::Release(receipt) => {
                    if let Some(place) = self.place_of(receipt.item.shard) {
                        self.release(place, receipt);
                    }
                }
                Undo::Restore { shard, life, picked } => self.restore(shard, life, *picked),
            }
        }
    }

    /// Ends a delivery without a failure; the item keeps its place.
    pub fn release(&mut self, place: usize, receipt: Receipt) {
        if let Some(owned) = &mut self.shards[place].owned {
            let action = NackAction::Release(Duration::ZERO);
            let kind = SettleKind::Nack { action, metadata: None, reason: String::new() };
            owned.settles.push_back(Settle { receipt, kind, slot: None });
        }
    }

    pub fn restore(&mut self, place: usize, life: u64, mut picked: Picked) {
        if self.shards[place].life != life {
            return;
        }
        if let Some(owned) = &mut self.shards[place].owned {
            picked.entry.deliveries += 1;
            owned.restores.push(picked);
        }
    }
}
