//! The watch of a candidate over a shard, and when it may take the shard over.
//!
//! Why that is safe, and all cases in which it may, are at the head of `io/take_over.rs`.

use std::time::Duration;

use forebay_store::Observation;
use forebay_types::{Incarnation, Monotonic};

use crate::{
    api::OwnerAnswer,
    planted::{Bug, on},
};

/// A shard is taken if nothing moved for so long, and all that is known of its owner is that its process
/// lives, or that it isn't sure of its claim.
const TAKE_OVER_AFTER_MAX: Duration = Duration::from_secs(10);
/// Beside a slow server, an owner that was not sure of its claim is asked again after so long: it may have
/// lost the shard since, and then nobody has it.
const ASK_UNSURE_EVERY: Duration = Duration::from_secs(1);
/// How long only the named successor takes a shard that was handed over.
const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(1);

/// The last observation of a candidate, and since when it has not changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The last observation.
    seen: Observation,
    /// When it was made first.
    since: Monotonic,
    /// The shard's server has committed a row for this node since then.
    probed: bool,
    /// The owner's answer since then, and when the attempt began that asked it.
    answer: Option<(OwnerAnswer, Monotonic)>,
}

/// The node that looks at a shard.
#[derive(Debug, Clone, Copy)]
pub struct CandidateNode<'a> {
    /// Where it answers, `host:port`.
    pub address: &'a str,
    /// How long a shard stays its own without a renewal.
    pub lease: Duration,
    /// It is to own the shard.
    pub wanted: bool,
    /// The epoch in which it served the shard last, unless it has released it.
    pub served_last: Option<u64>,
    /// The shard's server has been slow for it a short time ago.
    pub server_slow: bool,
}

/// Whether a shard's owner has shown no sign of life for long enough, or denies to own it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapse {
    /// That is known.
    Known(bool),
    /// First the shard's server is to commit a row: [`Watch::probed`].
    Probe,
    /// First the owner is to be asked whether it owns the shard in this tenure: [`Watch::answered`].
    Ask {
        /// The epoch that was seen.
        epoch: u64,
        /// The owner's random name.
        incarnation: Incarnation,
    },
}

/// The decision of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It takes the shard over, if nothing has changed since it was seen.
    TakeOver {
        /// How long the shard may have been without an owner.
        outage: Duration,
    },
    /// It goes on looking.
    Wait {
        /// The owner has shown no sign of life for long enough.
        silent: bool,
    },
}

impl Watch {
    /// Takes in what was seen just now. Whatever has changed is a sign of life, and the watch begins anew.
    pub fn look(watch: &mut Option<Self>, seen: Observation, now: Monotonic) -> &mut Self {
        let unchanged = watch.take().filter(|watch| watch.shows_the_same(&seen));
        watch.insert(match unchanged {
            Some(unchanged) => Self { seen, ..unchanged },
            None => Self { seen, since: now, probed: false, answer: None },
        })
    }

    fn shows_the_same(&self, seen: &Observation) -> bool {
        if on(Bug::BatchesIgnored) {
            return self.seen == Observation { batch: self.seen.batch, ..seen.clone() };
        }
        self.seen == *seen
    }

    /// The last observation.
    pub fn seen(&self) -> &Observation {
        &self.seen
    }

    /// The shard's server has committed a row for this node.
    pub fn probed(&mut self) {
        self.probed = true;
    }

    /// The owner has answered a question of the attempt that began at `now`, or has not.
    pub fn answered(&mut self, answer: OwnerAnswer, now: Monotonic) {
        match answer {
            // It lives: the wait begins anew.
            OwnerAnswer::Owns => (self.since, self.probed, self.answer) = (now, false, None),
            _ => self.answer = Some((answer, now)),
        }
    }

    /// Whether the owner has shown no sign of life for long enough, or denies to own the shard.
    pub fn lapse(&self, node: &CandidateNode<'_>, now: Monotonic) -> Lapse {
        let Observation { epoch, incarnation, .. } = self.seen;
        let (unchanged, lease) = (now.since(self.since), self.lease(node));
        if self.seen.address.is_empty() || unchanged < lease * 2 / 3 {
            return Lapse::Known(false);
        }
        // Before the owner is asked: where the server is slow it would step down for nothing.
        if !self.probed && !on(Bug::NoProbe) {
            return Lapse::Probe;
        }
        // Our own address in the heartbeat was written before this node restarted.
        let own = (self.seen.address == node.address).then_some((OwnerAnswer::Silent, now));
        let Some((answer, asked)) = self.answer.or(own) else { return Lapse::Ask { epoch, incarnation } };
        Lapse::Known(match answer {
            OwnerAnswer::Owns => return Lapse::Ask { epoch, incarnation },
            OwnerAnswer::Resigned => true,
            OwnerAnswer::Silent => unchanged >= lease,
            OwnerAnswer::Alive | OwnerAnswer::Unsure if unchanged >= TAKE_OVER_AFTER_MAX => true,
            OwnerAnswer::Unsure if !node.server_slow || now.since(asked) >= ASK_UNSURE_EVERY => {
                return Lapse::Ask { epoch, incarnation };
            }
            OwnerAnswer::Alive | OwnerAnswer::Unsure => false,
        })
    }

    /// Decides the next step, now that it is known whether the owner has lapsed.
    pub fn decide(&self, node: &CandidateNode<'_>, lapsed: bool, now: Monotonic) -> Decision {
        let unchanged = now.since(self.since);
        match () {
            () if !node.wanted => {}
            // Nobody has owned it since this node did, and its connections of then are gone. How long acks
            // found nobody is not known here: since the last commit, and that may be long ago.
            () if node.served_last == Some(self.seen.epoch) => {
                return Decision::TakeOver { outage: node.lease };
            }
            () if lapsed || self.is_free(node, unchanged) => return Decision::TakeOver { outage: unchanged },
            () => {}
        }
        Decision::Wait { silent: !self.seen.address.is_empty() && lapsed }
    }

    /// Whether the shard was released and is for this node, or its owner is known to be dead.
    fn is_free(&self, node: &CandidateNode<'_>, unchanged: Duration) -> bool {
        let Observation { successor, address, orphaned, .. } = &self.seen;
        let for_us = successor.is_empty() || successor == node.address;
        let may_come = unchanged < SUCCESSOR_TIMEOUT || on(Bug::SuccessorForEver);
        *orphaned || address.is_empty() && (for_us || !may_come)
    }

    /// How long the owner may be silent. Before the first owner: as long as this node.
    fn lease(&self, node: &CandidateNode<'_>) -> Duration {
        if self.seen.lease.is_zero() || on(Bug::CandidatesLease) { node.lease } else { self.seen.lease }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_millis(1_500);
    const NODE: CandidateNode<'_> = CandidateNode { server_slow: false, ..SLOW };
    const SLOW: CandidateNode<'_> = CandidateNode {
        address: "b:1",
        lease: Duration::from_millis(500),
        wanted: true,
        served_last: None,
        server_slow: true,
    };

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(millis))
    }

    fn owned() -> Observation {
        Observation { epoch: 3, address: "a:1".to_owned(), lease: LEASE, ..Observation::default() }
    }

    fn watched(seen: Observation) -> Watch {
        Watch::look(&mut None, seen, at(0)).clone()
    }

    #[test]
    fn an_owner_is_asked_after_two_thirds_of_its_own_lease_and_a_probe() {
        let mut watch = watched(owned());
        assert_eq!(watch.lapse(&NODE, at(999)), Lapse::Known(false));
        assert_eq!(watch.lapse(&NODE, at(1_000)), Lapse::Probe);
        watch.probed();
        let ask = Lapse::Ask { epoch: 3, incarnation: Incarnation::default() };
        assert_eq!(watch.lapse(&NODE, at(1_000)), ask);
        watch.answered(OwnerAnswer::Owns, at(1_000));
        assert_eq!(watch.lapse(&NODE, at(1_999)), Lapse::Known(false), "it lives");
        assert_eq!(watch.lapse(&NODE, at(2_000)), Lapse::Probe);
    }

    #[test]
    fn how_long_an_owner_is_waited_for_depends_on_its_answer() {
        for (answer, until) in
            [(OwnerAnswer::Resigned, 1_000), (OwnerAnswer::Silent, 1_500), (OwnerAnswer::Alive, 10_000)]
        {
            let mut watch = watched(owned());
            watch.probed();
            watch.answered(answer, at(1_000));
            if until > 1_000 {
                assert_eq!(watch.lapse(&NODE, at(until - 1)), Lapse::Known(false), "{answer:?}");
            }
            assert_eq!(watch.lapse(&NODE, at(until)), Lapse::Known(true), "{answer:?}");
        }
    }

    #[test]
    fn who_was_not_sure_while_the_server_was_slow_is_asked_again_once_it_is_not() {
        let mut watch = watched(owned());
        watch.probed();
        watch.answered(OwnerAnswer::Unsure, at(1_000));
        assert_eq!(watch.lapse(&SLOW, at(1_999)), Lapse::Known(false));
        assert!(matches!(watch.lapse(&NODE, at(1_100)), Lapse::Ask { .. }));
        assert_eq!(watch.lapse(&SLOW, at(10_000)), Lapse::Known(true), "nothing has moved for too long");
    }

    #[test]
    fn who_was_not_sure_is_asked_each_second_while_the_server_is_slow() {
        let mut watch = watched(owned());
        watch.probed();
        watch.answered(OwnerAnswer::Unsure, at(1_000));
        assert!(matches!(watch.lapse(&SLOW, at(2_000)), Lapse::Ask { .. }));
        watch.answered(OwnerAnswer::Unsure, at(2_000));
        assert_eq!(watch.lapse(&SLOW, at(2_999)), Lapse::Known(false));
        // It has lost the shard in the meantime.
        watch.answered(OwnerAnswer::Resigned, at(3_000));
        assert_eq!(watch.lapse(&SLOW, at(3_000)), Lapse::Known(true));
    }

    #[test]
    fn any_change_is_a_sign_of_life() {
        let changes = [
            Observation { batch: 1, ..owned() },
            Observation { renewals: 1, ..owned() },
            Observation { incarnation: Incarnation([1; 16]), ..owned() },
        ];
        for changed in changes {
            let mut watch = Some(watched(owned()));
            Watch::look(&mut watch, owned(), at(900)).probed();
            let watch = Watch::look(&mut watch, changed, at(950));
            assert_eq!(watch.lapse(&NODE, at(1_900)), Lapse::Known(false));
            assert_eq!(watch.lapse(&NODE, at(1_950)), Lapse::Probe, "the probe was before");
        }
    }

    #[test]
    fn its_own_address_answers_nobody() {
        let mut watch = watched(Observation { address: NODE.address.to_owned(), ..owned() });
        watch.probed();
        assert_eq!(watch.lapse(&NODE, at(1_499)), Lapse::Known(false));
        assert_eq!(watch.lapse(&NODE, at(1_500)), Lapse::Known(true));
    }

    #[test]
    fn a_released_shard_is_for_its_successor_and_after_a_second_for_anybody() {
        let released =
            |to: &str| watched(Observation { address: String::new(), successor: to.to_owned(), ..owned() });
        let takes =
            |watch: Watch, now| watch.decide(&NODE, false, at(now)) != Decision::Wait { silent: false };
        assert!(takes(released(""), 0) && takes(released("b:1"), 0));
        assert!(!takes(released("c:1"), 999) && takes(released("c:1"), 1_000));
        assert!(takes(watched(Observation { orphaned: true, ..owned() }), 0));
    }

    #[test]
    fn who_served_last_takes_it_again_and_who_is_not_to_own_it_never_does() {
        let watch = watched(owned());
        let again = CandidateNode { served_last: Some(3), ..NODE };
        assert_eq!(watch.decide(&again, false, at(0)), Decision::TakeOver { outage: NODE.lease });
        let older = CandidateNode { served_last: Some(2), ..NODE };
        assert_eq!(watch.decide(&older, false, at(0)), Decision::Wait { silent: false });
        assert_eq!(watch.decide(&NODE, true, at(1_500)), Decision::TakeOver { outage: LEASE });
        let other = CandidateNode { wanted: false, ..again };
        assert_eq!(watch.decide(&other, true, at(1_500)), Decision::Wait { silent: true });
    }
}
