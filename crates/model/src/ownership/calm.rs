//! The end of every way: nothing goes wrong any more, and each node does what it has to in every tick.

use super::{
    operation::Step,
    property,
    state::{Role, State},
};

/// Ticks without faults that are enough for a shard to be served: a candidate waits for a lease of three, a
/// successor that does not come for two, and the longest load takes four.
const TICKS: u8 = 14;

impl Step<'_> {
    /// Plays the end. The shard is for `home`, if it is for one node at a time.
    pub fn end(&mut self, home: usize) {
        self.state.home = home;
        self.state.nodes.iter_mut().for_each(|node| node.paused = false);
        self.state.operations.retain(|it| !it.orphan);
        self.be_fast();
        // The rest are questions that came to no end.
        while !self.state.operations.is_empty() {
            self.give_up(0);
            self.state.operations.retain(|it| !it.orphan);
        }
        for _ in 0..TICKS {
            self.tick();
            for node in 0..self.state.nodes.len() {
                if self.state.nodes[node].alive {
                    self.do_all(node);
                    self.note_broken();
                }
            }
        }
        self.state.over = true;
    }

    /// A node does all that it has to do.
    fn do_all(&mut self, node: usize) {
        self.take_up_duty(node);
        self.renew(node, false);
        if matches!(self.state.nodes[node].role, Role::Loads { left: 0, .. }) {
            self.loaded(node);
        }
        if self.state.nodes[node].owner().is_some_and(|owner| owner.flight.is_some()) {
            self.resolve(node);
        }
        if self.state.is_release_due(node) {
            self.order_release(node);
        }
        if self.state.can_release(self.scenario, node) {
            self.release(node, false);
        }
        if self.state.nodes[node].role == Role::Looks {
            self.look(node, super::candidate::DelayedPart::Nothing);
        }
    }

    fn note_broken(&mut self) {
        let State { broken, .. } = &self.state;
        if broken.is_none() {
            self.state.broken = property::broken(self.scenario, &self.state);
        }
    }
}
