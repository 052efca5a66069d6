//! A node that looks at the shard.

use forebay_engine::{
    OwnerAnswer,
    claim::{CandidateNode, Decision, Lapse, Watch},
};
use forebay_types::Incarnation;

use super::{
    operation::Step,
    rows::Tenure,
    scenario::{address, at, node_at},
    sent::Kind,
    state::Role,
};

/// Ticks in which a candidate remembers that the server was slow.
const SLOW_REMEMBERED: u8 = 6;

/// Part of an attempt that is delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayedPart {
    /// Nothing.
    Nothing,
    /// The question.
    Question,
    /// The take-over.
    TakeOver,
}

impl Step<'_> {
    /// Looks at the shard, and takes it over if that may be.
    pub fn look(&mut self, node: usize, delayed: DelayedPart) {
        let now = self.state.now;
        let seen = self.state.rows.seen.clone();
        let looking = &mut self.state.nodes[node];
        looking.looked = true;
        if self.state.slow && self.scenario.fast_probes {
            looking.slow_look = Some(now);
        }
        Watch::look(&mut looking.watch, seen, at(now));
        self.attempt(node, now, delayed);
    }

    /// Goes on with an attempt that began at a tick.
    fn attempt(&mut self, node: usize, began: u8, delayed: DelayedPart) {
        let own = address(node);
        let looking = &mut self.state.nodes[node];
        let candidate = CandidateNode {
            address: &own,
            lease: self.scenario.lease(node),
            wanted: !self.scenario.assigned || looking.home == node,
            served_last: looking.served_last,
            server_slow: looking.slow_look.is_some_and(|seen| began < seen + SLOW_REMEMBERED),
        };
        looking.role = Role::Looks;
        let Some(watch) = &mut looking.watch else { return };
        let lapsed = loop {
            match watch.lapse(&candidate, at(began)) {
                Lapse::Known(lapsed) => break lapsed,
                // It takes longer than half a second.
                Lapse::Probe if self.state.slow && !self.scenario.fast_probes => break false,
                Lapse::Probe => watch.probed(),
                Lapse::Ask { epoch, incarnation } => {
                    let to = node_at(&watch.seen().address);
                    looking.role = Role::Asks(began);
                    let question = Kind::Ask(to, Tenure { epoch, incarnation }, candidate.server_slow);
                    return match delayed {
                        DelayedPart::Question => self.send(node, question, true),
                        _ => self.ask(node, question, delayed == DelayedPart::TakeOver),
                    };
                }
            }
        };
        let Decision::TakeOver { .. } = watch.decide(&candidate, lapsed, at(began)) else { return };
        let seen = watch.seen().clone();
        looking.role = Role::Claims;
        self.state.incarnations += 1;
        let claim = Kind::TakeOver(Incarnation([self.state.incarnations; 16]), seen);
        self.send(node, claim, delayed == DelayedPart::TakeOver);
    }

    /// The owner has answered, or has not.
    pub fn answered(&mut self, node: usize, answer: OwnerAnswer, delayed: bool) {
        let Role::Asks(began) = self.state.nodes[node].role else { return };
        if let Some(watch) = &mut self.state.nodes[node].watch {
            watch.answered(answer, at(began));
        }
        self.attempt(node, began, if delayed { DelayedPart::TakeOver } else { DelayedPart::Nothing });
    }

    /// Begins to look as if it had seen nothing.
    pub fn look_anew(&mut self, node: usize) {
        let looking = &mut self.state.nodes[node];
        (looking.watch, looking.role) = (None, Role::Looks);
    }

    /// The take-over was answered: the shard is this node's, or has changed since it was seen.
    pub fn taken(&mut self, node: usize, began: u8, taken: Option<(Tenure, u64)>) {
        self.look_anew(node);
        let Some((tenure, batch)) = taken else { return };
        let looking = &mut self.state.nodes[node];
        looking.served_last = Some(tenure.epoch);
        looking.renewed = false;
        looking.role = Role::Loads { tenure, batch, began, left: self.scenario.load };
        if self.scenario.load == 0 {
            self.loaded(node);
        }
    }
}
