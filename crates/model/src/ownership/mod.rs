//! The nodes that own, want and give one shard.
//!
//! Time is counted in ticks of half a second, up to [`Scenario::faults_until`]. Until then the model has a
//! choice at each moment: which node does its next step, whether an operation takes effect at once or later,
//! which fault happens. Then [`calm`] plays one course without faults to its end, and the shard must be
//! served.

mod action;
mod calm;
mod candidate;
mod operation;
mod owner;
mod property;
pub mod rows;
mod scenario;
mod sent;
mod state;

pub use self::{
    action::Action,
    scenario::{Faults, Scenario},
    state::State,
};
use stateright::{Model, Property};

use crate::Mistake;

impl Model for Scenario {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        Mistake::plant(self.mistake);
        action::list(self, state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        Mistake::plant(self.mistake);
        action::done(self, last, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all()
    }
}
