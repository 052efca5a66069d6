//! A node that owns the shard, or is about to.

use forebay_engine::claim::{HandOver, Trust};
use forebay_store::{Fence, Outcome};

use super::{
    operation::Step,
    rows::Tenure,
    scenario::{Scenario, address, at},
    sent::Kind,
    state::{CallerAnswer, Flight, Owner, Role, State},
};
use crate::Mistake;

impl Step<'_> {
    /// The shard is loaded: it is served from now on, unless that was denied meanwhile.
    pub fn loaded(&mut self, node: usize) {
        let lease = self.scenario.lease(node);
        let owning = &mut self.state.nodes[node];
        let Role::Loads { tenure, batch, began, .. } = owning.role else { return };
        if !owning.denied.allows(tenure.epoch, tenure.incarnation) {
            return self.leave_behind(node, Role::Looks);
        }
        let trust = Trust::new(lease, at(began));
        owning.role = Role::Owns(Owner { tenure, trust, batch, flight: None, hand_over: None });
        self.take_up_duty(node);
    }

    /// Sends a renewal.
    pub fn renew(&mut self, node: usize, delayed: bool) {
        let while_loading = !self.scenario.has(Mistake::NoRenewalWhileLoading);
        let Some(tenure) = self.state.nodes[node].claim(while_loading) else { return };
        self.state.nodes[node].renewed = true;
        self.send(node, Kind::Renew(tenure), delayed);
    }

    /// A renewal that began at a tick was answered.
    pub fn renewed(&mut self, node: usize, tenure: Tenure, began: u8, done: bool) {
        let counts_from =
            if self.scenario.has(Mistake::TrustFromRenewalsEnd) { self.state.now } else { began };
        let Some(owner) = self.state.nodes[node].owner_mut().filter(|owner| owner.tenure == tenure) else {
            return;
        };
        if done {
            owner.trust.renewed(at(counts_from));
        } else if owner.flight.is_none() {
            // Its task looks at that only once its batch is resolved.
            self.lost(node, false);
        }
    }

    /// Sends the next batch.
    pub fn commit(&mut self, node: usize, delayed: bool) {
        let (call, sent_at) = (self.state.told.len(), self.state.now);
        let Some(owner) = self.state.nodes[node].owner_mut() else { return };
        let number = owner.batch + 1;
        owner.flight = Some(Flight { number, call, sent_at, unknown: false, behind: 0 });
        let batch = Kind::Batch(owner.tenure, number, call);
        self.state.told.push(CallerAnswer::Nothing);
        self.send(node, batch, delayed);
    }

    /// A batch was answered: it is stored, or the fence has moved.
    pub fn committed(&mut self, node: usize, done: bool) {
        let Some(owner) = self.state.nodes[node].owner_mut() else { return };
        if let Some(flight) = owner.flight.as_mut().filter(|_| !done) {
            flight.behind += 1;
            return self.resolve(node);
        }
        let Some(flight) = owner.flight.take() else { return };
        owner.batch = flight.number;
        owner.trust.renewed(at(flight.sent_at));
        self.state.told[flight.call] = CallerAnswer::Ok;
    }

    /// Ends the old connection, and asks the fence for the outcome of the batch in flight.
    pub fn resolve(&mut self, node: usize) {
        self.kill_writer_of(node);
        let fence = self.state.rows.fence();
        let ignores = self.state.rows.ignore_incarnation;
        let Some(owner) = self.state.nodes[node].owner_mut() else { return };
        let Some(flight) = &mut owner.flight else { return };
        let Tenure { epoch, incarnation } = owner.tenure;
        let fence = if ignores { Fence { incarnation, ..fence } } else { fence };
        match Outcome::of(&fence, epoch, incarnation, flight.number) {
            Outcome::Committed => self.committed(node, true),
            // The server has lost what it had committed.
            Outcome::NotCommitted if flight.behind > 1 => {
                let sent = flight.unknown;
                self.lost(node, sent);
            }
            Outcome::NotCommitted => {
                flight.unknown = false;
                let batch = Kind::Batch(owner.tenure, flight.number, flight.call);
                self.send(node, batch, false);
            }
            Outcome::Foreign => {
                let sent = flight.unknown;
                self.lost(node, sent);
            }
        }
    }

    /// Another node may be the shard's home now.
    pub fn take_up_duty(&mut self, node: usize) {
        let (home, now) = (self.state.home, at(self.state.now));
        let assigned = self.scenario.assigned;
        let owning = &mut self.state.nodes[node];
        owning.home = home;
        let Some(owner) = owning.owner_mut() else { return };
        if !assigned || home == node {
            owner.hand_over.take_if(|hand_over| !hand_over.ordered);
        } else if let Some(hand_over) = HandOver::begin(owner.hand_over.as_ref(), address(home), now) {
            owner.hand_over = Some(hand_over);
        }
    }

    /// The shard's task is told to release it.
    pub fn order_release(&mut self, node: usize) {
        let Some(owner) = self.state.nodes[node].owner_mut() else { return };
        if let Some(hand_over) = &mut owner.hand_over {
            hand_over.ordered = true;
            // From now on its successor may own it.
            owner.trust.resign();
        }
    }

    /// The shard's task releases it.
    pub fn release(&mut self, node: usize, delayed: bool) {
        let Some(owner) = self.state.nodes[node].owner() else { return };
        let successor = owner.hand_over.as_ref().map(|it| it.successor.clone()).unwrap_or_default();
        self.send(node, Kind::Release(owner.tenure, successor), delayed);
    }

    /// The shard was released, or its task has waited for that for long enough.
    pub fn released(&mut self, node: usize) {
        self.lost(node, false);
        self.state.nodes[node].served_last = None;
    }

    /// The shard is no longer this node's. `sent`: COMMIT of the batch in flight was sent.
    pub fn lost(&mut self, node: usize, sent: bool) {
        if let Some(owner) = self.state.nodes[node].owner_mut()
            && let Some(flight) = owner.flight.take()
        {
            self.state.told[flight.call] = if sent { CallerAnswer::Unknown } else { CallerAnswer::No };
        }
        self.leave_behind(node, Role::Looks);
        self.look_anew(node);
    }
}

impl State {
    /// Whether the shard's task is to be told to release it.
    pub(super) fn is_release_due(&self, node: usize) -> bool {
        let owner = self.nodes[node].owner();
        owner.is_some_and(|owner| {
            let idle = owner.flight.is_none();
            let hand_over = owner.hand_over.as_ref();
            hand_over.is_some_and(|hand_over| hand_over.is_due(idle, at(self.now)))
        })
    }

    /// Whether the shard's task can release it: it does one thing after the other.
    pub(super) fn can_release(&self, scenario: &Scenario, node: usize) -> bool {
        let under_way = |kind: &Kind| matches!(kind, Kind::Release(..));
        let mut operations = self.operations.iter();
        let is_new = !operations.any(|it| it.node == node && !it.orphan && under_way(&it.kind));
        is_new
            && self.nodes[node].owner().is_some_and(|owner| {
                let ordered = owner.hand_over.as_ref().is_some_and(|hand_over| hand_over.ordered);
                let early = scenario.has(Mistake::ReleaseBeforeOutcome);
                ordered && (owner.flight.is_none() || early)
            })
    }
}
