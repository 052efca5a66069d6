//! The oldest item that is first in its topic. There may be a million topics, so they are looked at slice by
//! slice, and the result is that of the last whole round.

use forebay_types::{Timestamp, TopicName};

/// A round over all topics.
#[derive(Default)]
pub(crate) struct OldestReady {
    /// The last topic that this round has looked at.
    after: Option<TopicName>,
    /// The oldest that it has found so far.
    found: Option<Timestamp>,
    /// The result of the last round.
    known: Option<Timestamp>,
}

impl OldestReady {
    /// Where this round goes on.
    pub fn after(&self) -> Option<&TopicName> {
        self.after.as_ref()
    }

    /// The first items of a slice of the topics became ready at these times. `last`: its last topic; `None`:
    /// the round is over.
    pub fn looked_at(&mut self, ready: impl Iterator<Item = Timestamp>, last: Option<TopicName>) {
        self.found = self.found.into_iter().chain(ready).min();
        if last.is_none() {
            self.known = self.found.take();
        }
        self.after = last;
    }

    /// When the oldest of them became ready, as of the last round.
    pub fn known(&self) -> Option<Timestamp> {
        self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_that_of_the_last_whole_round() {
        let mut oldest = OldestReady::default();
        let (at, topic) = (Timestamp::from_micros, TopicName::new("ns", "t"));
        oldest.looked_at([at(5), at(3)].into_iter(), Some(topic.clone()));
        assert_eq!((oldest.known(), oldest.after()), (None, Some(&topic)));
        oldest.looked_at([at(4)].into_iter(), None);
        assert_eq!((oldest.known(), oldest.after()), (Some(at(3)), None));
        oldest.looked_at(std::iter::empty(), Some(topic));
        assert_eq!(oldest.known(), Some(at(3)));
        oldest.looked_at(std::iter::empty(), None);
        assert_eq!(oldest.known(), None);
    }
}
