//! Items of the ready index that are not in the store. An owner that was replaced without knowing it meets
//! many: the new owner has delivered them. So nothing is said before the claim is renewed once more.

use forebay_types::{ItemId, Monotonic, Seq};

use super::{OwnedShard, work::ReservedItem};

impl OwnedShard {
    /// An item of the ready index is not in the store. It is not put back: it would be picked again at once.
    pub(super) fn has_vanished(&mut self, reserved: &ReservedItem, at: Monotonic) {
        self.clear_reservation(reserved.topic, reserved.key.seq, reserved.item.bytes);
        self.vanished.note(reserved.key.seq, at);
    }

    /// The claim was renewed by a call that began at `began`. Returns whether what memory knows of the shard
    /// is wrong, so that it is to be taken over anew.
    pub fn renewed(&mut self, began: Monotonic) -> bool {
        self.tenure.trust.renewed(began);
        let (sure, is_wrong) = self.vanished.confirm(began);
        sure.into_iter().for_each(|seq| self.log_vanished(seq));
        if is_wrong {
            let id = self.id;
            metrics::counter!("forebay_shards_given_up_total").increment(1);
            tracing::error!(
                shard.id = id.0,
                "items of shard {id}'s ready index are not in the store; taking it over anew"
            );
        }
        is_wrong
    }

    fn log_vanished(&self, seq: Seq) {
        let item = ItemId { shard: self.id, seq };
        metrics::counter!("forebay_vanished_items_total").increment(1);
        tracing::error!(
            shard.id = self.id.0,
            %item,
            "item {item} is in the ready index but not in the store; leaving it out"
        );
    }
}
