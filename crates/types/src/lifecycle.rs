//! The life of an item, as pure functions. `docs/PROTOCOL.md` draws it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// An item that fails with less than this left before its expiry, and shall wait for longer, is not tried
/// again.
const LAST_RETRY: Duration = Duration::from_secs(1);

/// Where a stored item is. A lease is not a state of the item's row: it is an entry in the lease log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// In the delivery order; leased if the lease log says so.
    Ready,
    /// Waits for its time; not in the delivery order until then.
    Scheduled,
}

/// The next state of an item after a delivery that was not acked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Goes back to its topic.
    Again,
    /// Goes back to its topic at this time: the delay that it was to have would end after its expiry.
    Sooner(Timestamp),
    /// Goes to the dead letters.
    Dead,
    /// Goes to the dead letters: it failed, and would not come back before it expires.
    TooLate,
    /// Its time to live is over.
    Expired,
}

/// Decides after a delivery failed (nacked or run out) for the `failures`-th time, and shall be back at
/// `due`.
///
/// Expiry comes first: an item that has expired is never dead-lettered, only removed.
pub fn after_failure(
    failures: u32,
    max_attempts: u32,
    expires_at: Option<Timestamp>,
    now: Timestamp,
    due: Timestamp,
) -> Ending {
    match after_release(expires_at, now, due) {
        Ending::Again | Ending::Sooner(_) if failures >= max_attempts => Ending::Dead,
        Ending::Sooner(_) if expires_at.is_some_and(|end| end.since(now) < LAST_RETRY) => Ending::TooLate,
        ending => ending,
    }
}

/// Decides after a consumer released an item, which shall be back at `due`: nothing failed. An expired item
/// is removed. Of a delay that would end after the expiry is left half of the time that the item has.
pub fn after_release(expires_at: Option<Timestamp>, now: Timestamp, due: Timestamp) -> Ending {
    match expires_at {
        Some(end) if end <= now => Ending::Expired,
        Some(end) if end <= due => Ending::Sooner(now.plus(end.since(now) / 2)),
        _ => Ending::Again,
    }
}

/// Decides after a consumer asked to make an item a dead letter at once. An expired item is removed.
pub fn after_rejection(expires_at: Option<Timestamp>, now: Timestamp) -> Ending {
    if expires_at.is_some_and(|end| end <= now) { Ending::Expired } else { Ending::Dead }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_failure_ends_in_one_of_three_ways() {
        let now = at(10);
        assert_eq!(after_failure(1, 2, None, now, now), Ending::Again);
        assert_eq!(after_failure(2, 2, None, now, now), Ending::Dead);
        assert_eq!(after_failure(2, 2, Some(now), now, now), Ending::Expired);
        assert_eq!(after_failure(1, 2, Some(at(11)), now, now), Ending::Again);
    }

    #[test]
    fn a_delay_ends_before_the_expiry() {
        let now = at(10);
        let after = |end, due| after_failure(1, 2, Some(at(end)), now, at(due));
        assert_eq!(
            (after(20, 19), after(20, 20), after(20, 99)),
            (Ending::Again, Ending::Sooner(at(15)), Ending::Sooner(at(15)),)
        );
        // The last failure is the last one, however much time is left.
        assert_eq!(after_failure(2, 2, Some(at(20)), now, at(99)), Ending::Dead);
        let half = Timestamp::from_micros(10_500_000);
        assert_eq!(after(11, 11), Ending::Sooner(half), "a second is enough");
        let soon = Timestamp::from_micros(10_999_999);
        assert_eq!(after_failure(1, 2, Some(soon), now, at(11)), Ending::TooLate);
        assert_eq!(after_failure(1, 2, Some(soon), now, now), Ending::Again, "it shall not wait");
    }

    #[test]
    fn an_expired_item_is_neither_released_nor_made_a_dead_letter() {
        let now = at(10);
        assert_eq!(after_release(Some(at(11)), now, now), Ending::Again);
        assert_eq!(after_release(Some(now), now, at(12)), Ending::Expired);
        assert_eq!(after_rejection(None, now), Ending::Dead);
        assert_eq!(after_rejection(Some(now), now), Ending::Expired);
    }

    #[test]
    fn a_release_never_ends_an_item_that_has_not_expired() {
        let soon = Timestamp::from_micros(10_000_010);
        assert_eq!(
            after_release(Some(soon), at(10), at(12)),
            Ending::Sooner(Timestamp::from_micros(10_000_005))
        );
    }
}
