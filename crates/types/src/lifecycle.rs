//! The life of an item, as pure functions. `docs/PROTOCOL.md` draws it.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Where a stored item is. A lease is not a state of the item's row: it is an entry in the lease log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// In the delivery order; leased if the lease log says so.
    Ready,
    /// Waits for its time; not in the delivery order until then.
    Scheduled,
}

/// What becomes of an item after a delivery that was not acked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Goes back to its topic.
    Again,
    /// Goes to the dead letters.
    Dead,
    /// Its time to live is over.
    Expired,
}

/// Decides after a delivery failed (nacked or run out) for the `failures`-th time.
///
/// Expiry comes first: an expired item is never dead-lettered, only removed.
pub fn after_failure(
    failures: u32,
    max_attempts: u32,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Ending {
    if expires_at.is_some_and(|end| end <= now) {
        Ending::Expired
    } else if failures >= max_attempts {
        Ending::Dead
    } else {
        Ending::Again
    }
}

/// Decides after a consumer released an item: nothing failed. An expired item is removed.
pub fn after_release(expires_at: Option<Timestamp>, now: Timestamp) -> Ending {
    if expires_at.is_some_and(|end| end <= now) { Ending::Expired } else { Ending::Again }
}

/// Decides after a consumer asked to make an item a dead letter at once. An expired item is removed.
pub fn after_rejection(expires_at: Option<Timestamp>, now: Timestamp) -> Ending {
    if expires_at.is_some_and(|end| end <= now) { Ending::Expired } else { Ending::Dead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_in_one_of_three_ways() {
        let at = Timestamp::from_micros;
        assert_eq!(after_failure(1, 2, None, at(10)), Ending::Again);
        assert_eq!(after_failure(2, 2, None, at(10)), Ending::Dead);
        assert_eq!(after_failure(2, 2, Some(at(10)), at(10)), Ending::Expired);
        assert_eq!(after_failure(1, 2, Some(at(11)), at(10)), Ending::Again);
    }

    #[test]
    fn an_expired_item_is_neither_released_nor_made_a_dead_letter() {
        let at = Timestamp::from_micros;
        assert_eq!(after_release(Some(at(11)), at(10)), Ending::Again);
        assert_eq!(after_release(Some(at(10)), at(10)), Ending::Expired);
        assert_eq!(after_rejection(None, at(10)), Ending::Dead);
        assert_eq!(after_rejection(Some(at(10)), at(10)), Ending::Expired);
    }
}
