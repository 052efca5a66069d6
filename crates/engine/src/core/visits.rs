//! Topics that have to be looked at: all of a namespace or a prefix to begin with, then those that change.

use std::{collections::BTreeSet, ops::Bound};

use forebay_types::Topic;

/// Topics that have to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    /// Topics whose head may have changed.
    stale: BTreeSet<Topic>,
    /// Topics whose head has to be read first.
    unread: BTreeSet<Topic>,
    /// The unread topic that was looked at last.
    looked_at: Option<Topic>,
    /// The topics were taken in up to this one.
    taken_in: Option<Topic>,
    /// All of them were.
    is_whole: bool,
    /// Once they are, they are taken in anew: some of those before may have been left out.
    again: bool,
    /// Topics that were marked since [`Visits::take_marked`].
    marked: usize,
    /// Topics of each kind that are remembered. `None`: a namespace has one order, so its topics are the
    /// bound.
    most: Option<usize>,
    /// Topics whose head has to be read were not remembered.
    is_cut: bool,
}

impl Visits {
    /// Remembers up to `most` topics of each kind by name.
    pub fn bounded(most: usize) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    /// A topic's head may have changed. If there are too many such topics, all are looked at again.
    pub fn mark(&mut self, topic: Topic) {
        if self.most.is_some_and(|most| self.stale.len() >= most) {
            return self.begin_anew();
        }
        self.marked += usize::from(self.stale.insert(topic));
    }

    /// All topics are to be looked at again.
    pub fn begin_anew(&mut self) {
        self.again = !self.is_whole;
        self.is_whole = false;
    }

    /// Up to which topic the topics were taken in; `None` once all of them were.
    pub fn next_to_take_in(&self) -> Option<Option<&Topic>> {
        (!self.is_whole).then_some(self.taken_in.as_ref())
    }

    /// These topics were taken in. `all`: there are no others.
    pub fn take_in(&mut self, topics: Vec<Topic>, all: bool) {
        self.taken_in = topics.last().cloned().or(self.taken_in.take());
        self.stale.extend(topics);
        if all {
            self.taken_in = None;
            self.is_whole = !std::mem::take(&mut self.again);
        }
    }

    /// Takes up to so many topics whose head may have changed.
    fn take_stale(&mut self, most: usize) -> Vec<Topic> {
        std::iter::from_fn(|| self.stale.pop_first()).take(most).collect()
    }

    /// How many topics were marked since the last call.
    pub fn take_marked(&mut self) -> usize {
        std::mem::take(&mut self.marked)
    }

    /// The next topics whose head was not read when they were looked at, in turn.
    fn next_unread(&mut self, most: usize) -> Vec<Topic> {
        let from = self.looked_at.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut next: Vec<Topic> = self.unread.range((from, Bound::Unbounded)).take(most).cloned().collect();
        if next.is_empty() {
            next = self.unread.iter().take(most).cloned().collect();
        }
        self.looked_at = next.last().cloned();
        next
    }

    /// The head of a topic has to be read first. If there are too many such topics, all are looked at again
    /// once half of them are read.
    pub fn set_unread(&mut self, topic: Topic) {
        match self.most {
            Some(most) if self.unread.len() >= most && !self.unread.contains(&topic) => self.is_cut = true,
            _ => drop(self.unread.insert(topic)),
        }
    }

    /// The head of a topic is known.
    pub fn is_known(&mut self, topic: &Topic) {
        self.unread.remove(topic);
        if self.is_cut && self.most.is_none_or(|most| self.unread.len() <= most / 2) {
            self.is_cut = false;
            self.begin_anew();
        }
    }

    /// The next topics to look at: up to `most` that may have changed, and behind them up to `unread` whose
    /// heads were not read. `behind`: as many topics by name, behind one of them.
    pub fn next(
        &mut self,
        most: usize,
        unread: usize,
        behind: impl FnOnce(Option<&Topic>) -> Vec<Topic>,
    ) -> Vec<Topic> {
        if let Some(after) = self.next_to_take_in() {
            let topics = behind(after);
            let all = topics.len() < most;
            self.take_in(topics, all);
        }
        let mut next = self.take_stale(most);
        if !self.has_stale() {
            next.extend(self.next_unread(unread));
        }
        next
    }

    /// Every topic was looked at since its last change, and its head is known.
    pub fn is_current(&self) -> bool {
        !self.has_stale() && self.unread.is_empty()
    }

    /// There is a topic to look at.
    pub fn has_stale(&self) -> bool {
        !self.is_whole || !self.stale.is_empty()
    }

    /// A topic's head has to be read.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_taken_in_and_looked_at_in_slices() {
        let mut visits = Visits::default();
        assert_eq!(visits.next_to_take_in(), Some(None));
        visits.take_in(vec!["a".into(), "b".into()], false);
        assert_eq!(visits.next_to_take_in(), Some(Some(&"b".into())));
        assert_eq!(visits.take_stale(1), ["a".into()]);
        visits.take_in(vec![], true);
        assert_eq!((visits.next_to_take_in(), visits.is_current()), (None, false));
        assert_eq!(visits.take_stale(9), ["b".into()]);
        assert!(visits.is_current());
    }

    #[test]
    fn if_too_many_topics_change_all_are_looked_at_again() {
        let mut visits = Visits::bounded(5);
        visits.take_in(vec!["a".into(), "b".into()], false);
        for id in 0..9 {
            visits.mark(format!("{id}").into());
        }
        assert_eq!(visits.take_stale(usize::MAX).len(), 5, "memory has a bound");
        visits.take_in(vec!["c".into()], true);
        assert_eq!(visits.next_to_take_in(), Some(None), "what came before b may have changed since");
        visits.take_in(vec!["a".into()], true);
        assert_eq!(visits.next_to_take_in(), None);
        visits.begin_anew();
        assert_eq!(visits.next_to_take_in(), Some(None));
        visits.take_in(vec![], true);
        assert_eq!(visits.next_to_take_in(), None, "once is enough");
    }

    #[test]
    fn unread_topics_without_room_are_looked_at_again_once_there_is_some() {
        let mut visits = Visits { is_whole: true, ..Visits::bounded(4) };
        let topics: Vec<Topic> = (0..6).map(|id| format!("{id}").into()).collect();
        topics.iter().for_each(|topic| visits.set_unread(topic.clone()));
        assert_eq!(visits.next_unread(9), topics[..4], "memory has a bound");
        visits.is_known(&topics[0]);
        assert!(!visits.has_stale() && !visits.is_current());
        visits.is_known(&topics[1]);
        assert_eq!(visits.next_to_take_in(), Some(None));
        visits.take_in(vec![], true);
        visits.is_known(&topics[2]);
        assert_eq!(visits.next_to_take_in(), None, "none was left out since");
    }

    #[test]
    fn unread_topics_are_looked_at_in_turn_until_they_are_known() {
        let mut visits = Visits { is_whole: true, ..Visits::default() };
        ["a", "b", "c"].into_iter().for_each(|topic| visits.set_unread(topic.into()));
        assert_eq!(visits.next_unread(2), ["a".into(), "b".into()]);
        assert_eq!(visits.next_unread(2), ["c".into()]);
        assert_eq!(visits.next_unread(2), ["a".into(), "b".into()]);
        assert!(!visits.is_current() && !visits.has_stale());
        ["a", "b", "c"].into_iter().for_each(|topic| visits.is_known(&topic.into()));
        assert!(visits.is_current() && visits.next_unread(2).is_empty());
    }
}
