//! Invariants of the node's memory between two turns of the event loop. The simulation, whose clock stands
//! still meanwhile, checks them after every turn.

use std::collections::HashMap;

use forebay_types::TopicName;

use super::{Core, polls::Polls, slot::Slots, topics::TopicPart};
use crate::invariant::broken;

/// With more topics, or polls, than this a check of each turn would take longer than the run.
const CHECKED_MAX: usize = 2_000;
/// This many times as long as a check took passes before the next one. A process that is tested would be much
/// slower than others if it checked after every turn.
const REST: u32 = 19;

impl Core {
    /// Checks the parts after a turn, in a twentieth of the time at most.
    pub fn check_in_turn(&mut self) {
        let begun = self.time.monotonic();
        if begun < self.next_check {
            return;
        }
        if let Err(what) = self.check() {
            broken(&what);
        }
        let ended = self.time.monotonic();
        self.next_check = ended.plus(ended.since(begun) * REST);
    }

    /// Checks that the parts agree with one another. The error says what does not.
    pub fn check(&self) -> Result<(), String> {
        self.slots.check()?;
        self.remote.check()?;
        if self.topics.len() > CHECKED_MAX || self.polls.len() > CHECKED_MAX {
            return Ok(());
        }
        self.topics.check(&owned_topics(&self.slots), |shard| self.listing.is_leaving(shard))?;
        if let Some(poll) = self.timers.polls().find(|poll| self.polls.get(*poll).is_none()) {
            return Err(format!("poll {poll} has a timer, and is answered"));
        }
        check_polls(&self.polls, |name, poll| self.topics.waiting(name).any(|waiting| waiting == poll))
    }
}

/// Every topic of an owned shard, with its parts.
fn owned_topics(slots: &Slots) -> HashMap<TopicName, Vec<TopicPart>> {
    let mut topics: HashMap<TopicName, Vec<TopicPart>> = HashMap::new();
    for (shard, slot) in slots.entries() {
        for (topic, name) in slot.owned().into_iter().flat_map(|owned| owned.topics()) {
            topics.entry(name.clone()).or_default().push(TopicPart { shard, topic });
        }
    }
    topics
}

/// A poll waits for all of its topics, or leases are under way for it.
fn check_polls(polls: &Polls, waits: impl Fn(&TopicName, u64) -> bool) -> Result<(), String> {
    for (id, poll) in polls.iter() {
        let waiting = poll.names.iter().filter(|name| waits(name, id)).count();
        let expected = if poll.leases.is_some() { 0 } else { poll.call.demands.len() };
        if waiting != expected {
            return Err(format!("poll {id} waits for {waiting} topics, not for {expected}"));
        }
        if poll.leases.as_ref().is_some_and(|leases| leases.at_most_once.len() > leases.left) {
            return Err(format!("poll {id} has more at-most-once shares than shares"));
        }
    }
    Ok(())
}
