//! Fate of each item.

use std::ops::Range;

use tokio::time::Instant;

/// An item.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// The server has said that it is stored.
    stored: bool,
    /// It was delivered.
    delivered: bool,
    /// When the server had said that it is done.
    acked: Option<Instant>,
}

/// All items, by their numbers.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The items.
    entries: Vec<Entry>,
    /// Items whose storing is confirmed.
    pub stored: u64,
    /// Items whose ack is confirmed.
    pub acked: u64,
    /// Stored items whose ack is confirmed.
    stored_and_acked: u64,
    /// Deliveries of items that had been delivered before: allowed, as after a lost lease.
    pub redelivered: u64,
    /// Deliveries that were asked for after the item's ack was confirmed: forbidden.
    pub after_ack: u64,
}

impl Ledger {
    /// The numbers of so many new items.
    pub fn reserve(&mut self, count: usize) -> Range<usize> {
        let from = self.entries.len();
        self.entries.resize(from + count, Entry::default());
        from..from + count
    }

    /// An item is stored.
    pub fn stored(&mut self, number: usize) {
        let Some(entry) = self.entries.get_mut(number) else { return };
        entry.stored = true;
        self.stored += 1;
        // An ack may overtake the answer to the enqueue.
        self.stored_and_acked += u64::from(entry.acked.is_some());
    }

    /// An item was delivered, in answer to a call of this time.
    pub fn delivered(&mut self, number: usize, called: Instant) {
        let Some(entry) = self.entries.get_mut(number) else { return };
        self.redelivered += u64::from(entry.delivered);
        self.after_ack += u64::from(entry.acked.is_some_and(|acked| acked < called));
        entry.delivered = true;
    }

    /// An item is done. Returns whether that is new.
    pub fn acked(&mut self, number: usize) -> bool {
        let Some(entry) = self.entries.get_mut(number).filter(|entry| entry.acked.is_none()) else {
            return false;
        };
        entry.acked = Some(Instant::now());
        self.acked += 1;
        self.stored_and_acked += u64::from(entry.stored);
        true
    }

    /// Items that are stored and not done.
    pub fn left(&self) -> u64 {
        self.stored - self.stored_and_acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_or_comes_after_its_ack_is_counted() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.reserve(3), 0..3);
        assert_eq!(ledger.reserve(1), 3..4);
        let called = Instant::now();
        (0..3).for_each(|number| ledger.stored(number));
        (0..2).for_each(|number| ledger.delivered(number, called));
        assert_eq!((ledger.left(), ledger.acked(0), ledger.left()), (3, true, 2));
        assert!(!ledger.acked(0), "a second ack is none");
        // The call was under way already when the item was acked.
        ledger.delivered(0, called);
        assert_eq!((ledger.redelivered, ledger.after_ack), (1, 0));
        ledger.delivered(0, Instant::now() + std::time::Duration::from_millis(1));
        assert_eq!((ledger.redelivered, ledger.after_ack), (2, 1));
        // Delivered and acked before the enqueue was answered.
        ledger.delivered(3, called);
        assert!(ledger.acked(3));
        assert_eq!(ledger.left(), 2);
        ledger.stored(3);
        assert_eq!((ledger.left(), ledger.stored, ledger.acked), (2, 4, 2));
    }
}
