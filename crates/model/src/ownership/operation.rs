//! Operations of the store and questions between nodes: they are sent, take effect, and are answered. Each
//! step may come late, or not at all.

use forebay_engine::{
    OwnerAnswer,
    claim::{Reply, reply},
};
use forebay_store::Claim;

use super::{
    rows::Tenure,
    scenario::{Scenario, address, at},
    sent::{Effect, Kind, Operation},
    state::{Role, State},
};

/// Ticks that a commit takes while the server is slow.
const SLOW_COMMIT: u8 = 4;

/// A step from one state to the next.
pub(super) struct Step<'a> {
    /// Bounds of the model.
    pub scenario: &'a Scenario,
    /// The state.
    pub state: State,
}

impl Step<'_> {
    /// Sends something. It takes effect and is answered at once, unless it is delayed or the server is slow.
    pub fn send(&mut self, node: usize, kind: Kind, delayed: bool) {
        let slow = self.state.slow && !matches!(kind, Kind::Ask(..));
        let operation = Operation { node, kind, sent: self.state.now, effect: None, orphan: false };
        self.state.left.delays -= u8::from(delayed);
        if delayed || slow {
            return self.state.operations.push(operation);
        }
        let operation = self.take_effect(operation);
        self.answer(operation, false);
    }

    /// Asks a node at once. `delayed`: what follows from the answer takes effect later.
    pub fn ask(&mut self, node: usize, question: Kind, delayed: bool) {
        let sent = self.state.now;
        let operation = Operation { node, kind: question, sent, effect: None, orphan: false };
        let operation = self.take_effect(operation);
        self.answer(operation, delayed);
    }

    /// An operation takes effect.
    pub fn take_effect(&mut self, operation: Operation) -> Operation {
        let node = operation.node;
        let rows = &mut self.state.rows;
        let effect = match &operation.kind {
            Kind::Renew(tenure) => Effect::Done(rows.renew(*tenure)),
            Kind::Batch(tenure, number, call) => Effect::Done(rows.commit(*tenure, *number, *call)),
            Kind::Release(tenure, successor) => Effect::Done(rows.release(*tenure, successor)),
            Kind::Ask(to, tenure, slow) => Effect::Said(self.asked(*to, *tenure, *slow)),
            Kind::TakeOver(incarnation, seen) => {
                let before = rows.clone();
                let incarnation = *incarnation;
                let claim = Claim { incarnation, address: address(node), lease: self.scenario.lease(node) };
                let fence = rows.take_over(&claim, seen);
                if fence.is_some() {
                    self.state.before = (self.scenario.faults.forgets > 0).then_some(before);
                    self.kill_writers();
                }
                let tenure = |epoch| Tenure { epoch, incarnation };
                Effect::Taken(fence.map(|fence| (tenure(fence.epoch), fence.batch)))
            }
        };
        Operation { effect: Some(effect), ..operation }
    }

    /// The old owner's writing connection ends: what was sent on it and has not taken effect never will.
    fn kill_writers(&mut self) {
        let ends = |it: &Operation| it.is_writers() && it.effect.is_none();
        self.state.operations.retain(|it| !it.orphan || !ends(it));
        for killed in self.state.operations.iter_mut().filter(|it| ends(it)) {
            // Its node finds the connection gone, and the fence with another owner.
            killed.effect = Some(Effect::Done(false));
        }
    }

    /// The old connection of a node's writer ends before it reads the fence.
    pub fn kill_writer_of(&mut self, node: usize) {
        self.state.operations.retain(|it| it.node != node || !matches!(it.kind, Kind::Batch(..)));
    }

    /// The answer comes, if anybody waits for it. `delayed`: what follows from it takes effect later.
    pub fn answer(&mut self, operation: Operation, delayed: bool) {
        let Operation { node, kind, sent, effect, orphan } = operation;
        let Some(effect) = effect.filter(|_| !orphan) else { return };
        match (kind, effect) {
            (Kind::Renew(tenure), Effect::Done(done)) => self.renewed(node, tenure, sent, done),
            (Kind::Batch(..), Effect::Done(done)) => self.committed(node, done),
            (Kind::Release(..), _) => self.released(node),
            (Kind::TakeOver(..), Effect::Taken(taken)) => self.taken(node, sent, taken),
            (Kind::Ask(..), Effect::Said(answer)) => self.answered(node, answer, delayed),
            _ => {}
        }
    }

    /// Nobody waits for the answer any more. Whether it takes effect is open.
    pub fn give_up(&mut self, index: usize) {
        let operation = &mut self.state.operations[index];
        operation.orphan = true;
        let node = operation.node;
        match operation.kind {
            Kind::Renew(_) => {}
            Kind::Batch(..) => {
                if let Some(owner) = self.state.nodes[node].owner_mut()
                    && let Some(flight) = &mut owner.flight
                {
                    flight.unknown = true;
                }
            }
            Kind::Release(..) => self.released(node),
            Kind::TakeOver(..) => self.look_anew(node),
            Kind::Ask(..) => self.answered(node, OwnerAnswer::Silent, false),
        }
    }

    /// Returns a node's answer to a candidate. `server_slow`: so it is for that one.
    fn asked(&mut self, to: usize, tenure: Tenure, server_slow: bool) -> OwnerAnswer {
        if !self.state.runs(to) {
            return OwnerAnswer::Silent;
        }
        let (Tenure { epoch, incarnation }, now) = (tenure, at(self.state.now));
        let node = &mut self.state.nodes[to];
        let owner = node.owner().filter(|owner| owner.tenure == tenure);
        match reply(owner.map(|owner| owner.trust.holds(now)), server_slow) {
            Reply::Owns => return OwnerAnswer::Owns,
            Reply::Unsure => return OwnerAnswer::Unsure,
            Reply::Deny => node.denied.note(epoch, incarnation),
            // Whether COMMIT of the batch in flight was sent is known to its task alone.
            Reply::StepDown => self.lost(to, true),
        }
        if !self.state.denied.contains(&(to, tenure)) {
            self.state.denied.push((to, tenure));
        }
        OwnerAnswer::Resigned
    }

    /// Gives up a node's operations under way: they are over for it. `role`: its role now.
    pub fn leave_behind(&mut self, node: usize, role: Role) {
        self.state.nodes[node].role = role;
        self.state.operations.iter_mut().filter(|it| it.node == node).for_each(|it| it.orphan = true);
        // An operation that took effect and has no listener is dropped.
        self.state.operations.retain(|it| !it.orphan || it.effect.is_none());
    }
}

impl State {
    /// Whether an operation can take effect now.
    pub(super) fn can_apply(&self, operation: &Operation) -> bool {
        let reached = match &operation.kind {
            Kind::Ask(to, ..) => self.runs(*to),
            _ => !self.slow || self.now >= operation.sent + SLOW_COMMIT,
        };
        operation.effect.is_none() && reached
    }
}
