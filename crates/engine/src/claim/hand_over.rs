//! A shard that its owner gives to another node.

use std::time::Duration;

use forebay_types::Monotonic;

/// Work that is not committed after so long is refused, so that a hand-over stops a shard's calls only for a
/// moment. A batch in flight is waited for all the same.
const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(200);

/// The node owns the shard, and is about to hand it over. It takes nothing new; what it has accepted is
/// committed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HandOver {
    /// The node that shall have it next. Empty: any node may.
    pub successor: String,
    /// When what is not committed by then is refused.
    pub until: Monotonic,
    /// Its task was told to release it. A further batch would come too late.
    pub ordered: bool,
}

impl HandOver {
    /// Begins to hand a shard over, or gives it to another successor than before. `None`: it is too late for
    /// that.
    pub fn begin(under_way: Option<&Self>, successor: String, at: Monotonic) -> Option<Self> {
        let until = match under_way {
            Some(HandOver { ordered: true, .. }) => return None,
            Some(under_way) => under_way.until,
            None => at.plus(HAND_OVER_TIMEOUT),
        };
        Some(Self { successor, until, ordered: false })
    }

    /// Whether the shard's task is to be told now. `idle`: nothing of the shard waits.
    pub fn is_due(&self, idle: bool, at: Monotonic) -> bool {
        !self.ordered && (idle || at >= self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(millis))
    }

    fn begin(under_way: Option<&HandOver>, successor: &str, millis: u64) -> Option<HandOver> {
        HandOver::begin(under_way, successor.to_owned(), at(millis))
    }

    #[test]
    fn the_successor_may_change_until_the_release_and_the_time_does_not() {
        let first = begin(None, "b:1", 0).unwrap();
        let second = begin(Some(&first), "c:1", 100).unwrap();
        assert_eq!((second.successor.as_str(), second.until), ("c:1", at(200)));
        let ordered = HandOver { ordered: true, ..second };
        assert_eq!(begin(Some(&ordered), "b:1", 150), None);
    }

    #[test]
    fn a_shard_is_released_once_when_nothing_waits_or_the_time_is_over() {
        let mut hand_over = begin(None, "b:1", 0).unwrap();
        assert!(hand_over.is_due(true, at(0)));
        assert!(!hand_over.is_due(false, at(199)) && hand_over.is_due(false, at(200)));
        hand_over.ordered = true;
        assert!(!hand_over.is_due(true, at(300)));
    }
}
