//! Whether the disk has room. After "disk full" what needs room is held back, and tried again after a pause
//! that doubles, until it goes through. What needs less is not held with it: acks need no room at all, so
//! they are committed alone and free some.

use std::time::Duration;

use forebay_store::Batch;
use forebay_types::{Monotonic, Reason, Refusal, ShardId};

use crate::api::RETRY_AFTER;

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How much room on the disk something needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Rows are deleted: acks, expired items.
    Nothing,
    /// Rows are changed, or small ones added: leases, nacks, extensions, items that are due, operations,
    /// what topics counted that are forgotten.
    Rows,
    /// Whole items are stored: new ones, dead letters, and those that are inserted again or redriven.
    Items,
}

impl Need {
    const ALL: [Self; 3] = [Self::Nothing, Self::Rows, Self::Items];

    /// The need of a batch.
    pub fn of(batch: &Batch) -> Self {
        let changes =
            batch.requeues.len() + batch.dead_letter_keeps.len() + batch.updates.len() + batch.put_offs.len();
        let rows = batch.leases.len() + batch.promotes.len() + batch.operations.len() + changes;
        // Where dead letters of forgotten topics go, such a row is there already, and grows by nothing.
        let forgets = batch.dormant_losses.is_empty() || !batch.drop_topics.is_empty();
        let rows = rows + if forgets { batch.namespace_tallies.len() } else { 0 };
        let items = batch.inserts.len() + batch.dead_letters.len() + batch.redrives.len();
        match () {
            () if items + batch.dedupes.len() > 0 => Self::Items,
            () if rows > 0 || batch.topology_history.is_some() => Self::Rows,
            () => Self::Nothing,
        }
    }
}

/// The hold on batches of a need.
#[derive(Debug, Clone, Copy, Default)]
struct BatchHold {
    /// How long the last pause is. Zero: it went through when it was tried last.
    pause: Duration,
    /// When it is tried again.
    until: Monotonic,
}

/// The room on the disk, as far as is known.
#[derive(Debug, Default)]
pub(in crate::shard) struct DiskRoom {
    /// By need.
    held: [BatchHold; Need::ALL.len()],
    /// All that waits is held back: there is no use in building a batch.
    barren: bool,
}

impl DiskRoom {
    /// The most that a batch may need now. `None`: not even acks are tried.
    pub fn allowed(&self, at: Monotonic) -> Option<Need> {
        Need::ALL.into_iter().take_while(|need| at >= self.held[*need as usize].until).last()
    }

    /// The disk was full for a batch with this need. Returns whether that is new, and when whole items are
    /// tried again.
    pub fn full(&mut self, need: Need, at: Monotonic) -> (bool, Monotonic) {
        let is_new = self.held[Need::Items as usize].pause.is_zero();
        for held in &mut self.held[need as usize..] {
            held.pause = (held.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
            held.until = at.plus(held.pause);
        }
        (is_new, self.held[Need::Items as usize].until)
    }

    /// A batch with this need was committed. Returns whether everything goes through again.
    pub fn went_through(&mut self, need: Need) -> bool {
        let was_full = !self.held[Need::Items as usize].pause.is_zero();
        self.held[..=need as usize].fill(BatchHold::default());
        was_full && need == Need::Items
    }

    /// When something that is held back is tried again.
    pub fn next_try(&self, at: Monotonic) -> Option<Monotonic> {
        self.held.iter().map(|held| held.until).filter(|until| *until > at).min()
    }

    /// A batch was to be built, and all that waits is held back.
    pub fn set_barren(&mut self, at: Monotonic) {
        self.barren = self.next_try(at).is_some();
    }

    /// Something came that may not have to wait.
    pub fn set_fertile(&mut self) {
        self.barren = false;
    }

    /// All that waits is held back until [`DiskRoom::next_try`].
    pub fn is_barren(&self, at: Monotonic) -> bool {
        self.barren && self.next_try(at).is_some()
    }
}

/// The refusal of an enqueue for which the disk has no room.
pub(in crate::shard) fn disk_full(id: ShardId) -> Refusal {
    Refusal::new(Reason::DiskFull, format!("the disk of shard {id} is full")).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use forebay_store::Redrive;
    use forebay_types::{Key, Seq, Timestamp, TopicId};

    use super::*;
    use crate::shard::tests::{at, attributes};

    #[test]
    fn what_needs_less_is_not_held_back_with_it() {
        let mut room = DiskRoom::default();
        assert_eq!(room.full(Need::Items, at(0)), (true, at(100)));
        assert_eq!((room.allowed(at(0)), room.next_try(at(0))), (Some(Need::Rows), Some(at(100))));
        room.full(Need::Rows, at(10));
        assert_eq!(room.allowed(at(10)), Some(Need::Nothing));
        room.full(Need::Nothing, at(20));
        assert_eq!((room.allowed(at(20)), room.allowed(at(119))), (None, None));
        assert_eq!(room.allowed(at(120)), Some(Need::Nothing), "the others have waited longer");
    }

    #[test]
    fn to_keep_a_dead_letter_for_longer_takes_a_row_and_to_delete_one_takes_nothing() {
        let end = Timestamp::from_micros(1);
        let keeps = Batch { dead_letter_keeps: vec![(Seq(1), end)], ..Batch::default() };
        let deletes = Batch { dead_letter_deletes: vec![Seq(1)], ..Batch::default() };
        assert_eq!((Need::of(&keeps), Need::of(&deletes)), (Need::Rows, Need::Nothing));
    }

    #[test]
    fn to_redrive_takes_items() {
        let key = Key { priority: 0, rank: 0, seq: Seq(1) };
        let redrive = Redrive { topic: TopicId(1), key, attributes: attributes(), packed: Vec::new() };
        let redrives = Batch { redrives: vec![redrive], ..Batch::default() };
        assert_eq!(Need::of(&redrives), Need::Items);
    }

    #[test]
    fn pauses_double_up_to_a_second_and_begin_again_once_it_went_through() {
        let mut room = DiskRoom::default();
        let pauses = [0, 1, 2, 3, 4, 5].map(|_| room.full(Need::Items, at(0)).1);
        assert_eq!(pauses, [100, 200, 400, 800, 1_000, 1_000].map(at));
        assert!(!room.went_through(Need::Rows) && room.next_try(at(0)).is_some());
        assert!(room.went_through(Need::Items) && room.next_try(at(0)).is_none());
        assert!(!room.went_through(Need::Items), "it is said once");
        assert_eq!(room.full(Need::Items, at(0)), (true, at(100)));
    }
}
