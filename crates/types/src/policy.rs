//! Policies: what operators and tenants want of a topic, or of a namespace with all of its topics.

use serde::{Deserialize, Serialize};

use crate::{SettingsRow, TopicName, time::Timestamp};

/// The most bytes of a pause's note.
pub const NOTE_BYTES_MAX: usize = 1 << 10;
/// The most bytes of the name of who paused something.
pub const PAUSED_BY_BYTES_MAX: usize = 200;

/// One of the two sides of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// New items come in.
    Enqueue,
    /// Items are handed out.
    Dequeue,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Enqueue, Self::Dequeue];

    /// The side as people read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Dequeue => "dequeue",
        }
    }
}

/// One side is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The operator who did it.
    pub by: String,
    /// Since when.
    pub since: Timestamp,
    /// When it ends by itself. `None`: it does not.
    pub until: Option<Timestamp>,
    /// Why, for people.
    pub note: String,
}

impl Pause {
    /// Whether it is over at `now`.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// The pauses that operators set for a topic or a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policy {
    /// New items are refused.
    pub enqueue: Option<Pause>,
    /// Nothing is handed out.
    pub dequeue: Option<Pause>,
}

impl Policy {
    /// Nothing is wanted: it is as if there was no policy.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The pause of a side.
    pub fn pause(&self, side: Side) -> Option<&Pause> {
        match side {
            Side::Enqueue => self.enqueue.as_ref(),
            Side::Dequeue => self.dequeue.as_ref(),
        }
    }

    /// The same, to change it.
    pub fn pause_mut(&mut self, side: Side) -> &mut Option<Pause> {
        match side {
            Side::Enqueue => &mut self.enqueue,
            Side::Dequeue => &mut self.dequeue,
        }
    }

    /// Forgets pauses that are over at `now`.
    pub fn drop_ended(&mut self, now: Timestamp) {
        for side in Side::BOTH {
            self.pause_mut(side).take_if(|pause| pause.is_over(now));
        }
    }

    /// When the next of its pauses ends by itself.
    pub fn next_end(&self) -> Option<Timestamp> {
        Side::BOTH.iter().filter_map(|side| self.pause(*side)?.until).min()
    }
}

/// A policy as the catalog has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRow {
    /// The topic. An empty one: the namespace itself.
    pub name: TopicName,
    /// Grows with each change of any policy.
    pub version: u64,
    /// The policy. Nothing: it was removed.
    pub policy: Policy,
}

/// Policies and settings that have changed since somebody looked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PolicyChanges {
    /// These are all policies and settings: what is not among them is gone.
    pub whole: bool,
    /// The policies that have changed, the removed ones included, in the order of their versions.
    pub rows: Vec<PolicyRow>,
    /// The settings that have changed, likewise.
    pub settings: Vec<SettingsRow>,
}

impl PolicyChanges {
    /// There is nothing to change.
    pub fn is_nothing(&self) -> bool {
        !self.whole && self.rows.is_empty() && self.settings.is_empty()
    }

    /// Adds what was read later.
    pub fn extend(&mut self, later: Self) {
        if later.whole {
            *self = later;
        } else {
            self.rows.extend(later.rows);
            self.settings.extend(later.settings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(until: Option<i64>) -> Option<Pause> {
        let (by, note) = ("ops".to_owned(), String::new());
        Some(Pause { by, since: Timestamp::MIN, until: until.map(Timestamp::from_micros), note })
    }

    #[test]
    fn a_pause_is_over_at_its_end_and_then_forgotten() {
        let mut policy = Policy { enqueue: pause(Some(20)), dequeue: pause(Some(10)) };
        assert_eq!(policy.next_end(), Some(Timestamp::from_micros(10)));
        policy.drop_ended(Timestamp::from_micros(9));
        assert!(policy.dequeue.is_some());
        policy.drop_ended(Timestamp::from_micros(10));
        assert_eq!((policy.dequeue.is_none(), policy.is_nothing()), (true, false));
        policy.drop_ended(Timestamp::from_micros(20));
        assert!(policy.is_nothing() && policy.next_end().is_none());
        let endless = Policy { enqueue: pause(None), ..Policy::default() };
        assert!(endless.pause(Side::Enqueue).is_some_and(|pause| !pause.is_over(Timestamp::MAX)));
    }

    #[test]
    fn what_is_whole_replaces_what_was_read_before() {
        let row = |topic: &str, version| PolicyRow {
            name: TopicName::new("ns", topic),
            version,
            policy: Policy::default(),
        };
        let changed = |whole, row| PolicyChanges { whole, rows: vec![row], ..PolicyChanges::default() };
        let set = SettingsRow { name: TopicName::new("ns", "a"), version: 5, settings: Default::default() };
        let mut changes = PolicyChanges::default();
        assert!(changes.is_nothing());
        changes.extend(changed(false, row("a", 1)));
        changes.extend(PolicyChanges { settings: vec![set], ..changed(false, row("b", 2)) });
        assert_eq!((changes.whole, changes.rows.len(), changes.settings.len()), (false, 2, 1));
        changes.extend(changed(true, row("c", 3)));
        changes.extend(changed(false, row("d", 4)));
        assert_eq!((changes.whole, changes.rows.len(), changes.settings.len()), (true, 2, 0));
    }
}
