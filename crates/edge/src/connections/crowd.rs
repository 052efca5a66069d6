//! Connections by address, and which of them makes room first: one of the address with the most. Nothing here
//! looks at all of them.
//!
//! Of an address the one goes that has shown least, and of these the oldest. But one that has just come is
//! given a moment to show something: else whoever holds places with connections that have begun would have
//! each newcomer put out by the next one. While all that have shown least are that young, the oldest goes.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::time::Instant;

use super::address::Address;

/// How long a connection is young.
const YOUTH: Duration = Duration::from_millis(200);

/// Counts the connections of a port in the order in which they came.
pub type Id = u64;

/// How far a connection is. Of one address the first ones make room first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// Nothing was received.
    Silent,
    /// A TLS handshake is under way.
    Handshake,
    /// It has begun, and has had no call.
    Begun,
    /// A call has begun. No credential was accepted.
    Called,
    /// A credential was accepted: it makes no room.
    Accepted,
}

/// A connection, with its stage and the time when it came.
pub type Member = (Stage, Id, Instant);

/// The connections of one address.
#[derive(Debug, Default)]
struct Members {
    /// With those that have shown least first.
    by_stage: BTreeSet<Member>,
    /// In the order in which they came.
    by_age: BTreeSet<(Id, Stage, Instant)>,
}

impl Members {
    /// Which makes room first.
    fn first(&self, now: Instant) -> Option<Member> {
        let least = self.by_stage.first().copied()?;
        let oldest = self.by_age.first().map(|(id, stage, came)| (*stage, *id, *came));
        let is_young = now.duration_since(least.2) < YOUTH;
        Some(if is_young { oldest.unwrap_or(least) } else { least })
    }
}

/// Connections by address.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// By address.
    members: HashMap<Address, Members>,
    /// How many each address has, and which of these has shown least: the last of these makes room.
    order: BTreeSet<(usize, Reverse<Member>, Address)>,
    /// All of them.
    len: usize,
}

impl Crowd {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many of them an address has.
    pub fn of(&self, address: Address) -> usize {
        self.members.get(&address).map_or(0, |members| members.by_stage.len())
    }

    /// Which of an address makes room first.
    pub fn first_of(&self, address: Address) -> Option<Member> {
        self.members.get(&address)?.first(Instant::now())
    }

    /// Which of all makes room first.
    pub fn first(&self) -> Option<(Address, Member)> {
        let (.., address) = self.order.last()?;
        Some((*address, self.first_of(*address)?))
    }

    /// One more.
    pub fn add(&mut self, address: Address, member: Member) {
        self.change(address, |members| {
            members.by_stage.insert(member);
            members.by_age.insert((member.1, member.0, member.2));
        });
    }

    /// One less.
    pub fn remove(&mut self, address: Address, member: Member) {
        self.change(address, |members| {
            members.by_stage.remove(&member);
            members.by_age.remove(&(member.1, member.0, member.2));
        });
    }

    fn change(&mut self, address: Address, change: impl FnOnce(&mut Members)) {
        let mut members = self.members.remove(&address).unwrap_or_default();
        if let Some(first) = members.by_stage.first() {
            self.order.remove(&(members.by_stage.len(), Reverse(*first), address));
        }
        self.len -= members.by_stage.len();
        change(&mut members);
        self.len += members.by_stage.len();
        if let Some(first) = members.by_stage.first() {
            self.order.insert((members.by_stage.len(), Reverse(*first), address));
            self.members.insert(address, members);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::V4(1);
    const B: Address = Address::V4(2);

    /// The ids of all, in the order in which they make room.
    fn emptied(mut crowd: Crowd) -> Vec<Id> {
        let mut gone = Vec::new();
        while let Some((address, member)) = crowd.first() {
            crowd.remove(address, member);
            gone.push(member.1);
        }
        assert_eq!((crowd.len(), crowd.of(A)), (0, 0));
        gone
    }

    fn crowd() -> Crowd {
        let (mut crowd, now) = (Crowd::default(), Instant::now());
        assert_eq!(crowd.first(), None);
        crowd.add(B, (Stage::Silent, 1, now));
        for (stage, id) in [(Stage::Called, 2), (Stage::Silent, 4), (Stage::Silent, 3), (Stage::Begun, 0)] {
            crowd.add(A, (stage, id, now));
        }
        crowd
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_silent_one_of_the_address_with_the_most_is_first() {
        let crowd = crowd();
        tokio::time::advance(YOUTH).await;
        // The last two are one of each address: the silent one goes first.
        assert_eq!(emptied(crowd), [3, 4, 0, 1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_has_a_moment_before_older_ones() {
        assert_eq!(emptied(crowd()), [0, 2, 3, 1, 4]);
    }

    #[test]
    fn what_is_not_there_is_not_removed() {
        let (mut crowd, now) = (Crowd::default(), Instant::now());
        let one = (Stage::Silent, 1, now);
        crowd.add(A, one);
        crowd.remove(A, (Stage::Begun, 1, now));
        crowd.remove(B, one);
        assert_eq!((crowd.len(), crowd.first_of(A), crowd.first_of(B)), (1, Some(one), None));
    }
}
