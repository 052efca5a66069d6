//! The network between nodes: messages take time, get lost, and ways are cut, in one direction or both.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::fake::Dice;

/// Fate of a message and its answer.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// How long the message is on its way.
    pub there: Duration,
    /// How long the answer is on its way.
    pub back: Duration,
    /// The message does not arrive.
    pub lost_there: bool,
    /// The answer does not arrive.
    pub lost_back: bool,
    /// The message arrives once more after so long.
    pub again: Option<Duration>,
}

/// The network.
pub struct Network(Mutex<State>);

struct State {
    /// Chance of the fates of messages.
    dice: Dice,
    /// Messages that get lost, and as many that arrive twice, per mille.
    lost: u32,
    /// Ways that are cut: from one process to another.
    cuts: BTreeSet<(usize, usize)>,
    /// Nothing gets lost any more.
    is_calm: bool,
    /// Calls for items of another node get lost all the same.
    loses_fetches: bool,
}

impl Network {
    /// A healthy one.
    pub fn new(dice: Dice) -> Self {
        let cuts = BTreeSet::new();
        Self(Mutex::new(State { dice, lost: 0, cuts, is_calm: false, loses_fetches: false }))
    }

    /// Decides the fate of the next message.
    pub fn way(&self) -> Way {
        let State { dice, lost, .. } = &mut *self.lock();
        Way {
            there: dice.millis((0, 8)),
            back: dice.millis((0, 8)),
            lost_there: dice.chance(*lost),
            lost_back: dice.chance(*lost),
            again: dice.chance(*lost).then(|| dice.millis((0, 2_000))),
        }
    }

    /// Throws dice for something on the way.
    pub fn chance(&self, per_mille: u32) -> bool {
        self.lock().dice.chance(per_mille)
    }

    /// Whether messages of one process reach another one.
    pub fn is_open(&self, from: usize, to: usize) -> bool {
        !self.lock().cuts.contains(&(from, to))
    }

    /// Cuts ways.
    pub fn cut(&self, ways: &[(usize, usize)]) {
        self.lock().cuts.extend(ways);
    }

    /// Loses so many messages, and doubles as many, per mille.
    pub fn lose(&self, per_mille: u32) {
        self.lock().lost = per_mille;
    }

    /// Nothing gets lost any more, not even as a rule.
    pub fn calm(&self) {
        self.lock().is_calm = true;
    }

    /// Whether nothing gets lost any more.
    pub fn is_calm(&self) -> bool {
        self.lock().is_calm
    }

    /// Calls for items of another node get lost from now on, or no more. All else arrives.
    pub fn lose_fetches(&self, loses: bool) {
        self.lock().loses_fetches = loses;
    }

    /// Whether calls for items of another node get lost.
    pub fn loses_fetches(&self) -> bool {
        self.lock().loses_fetches
    }

    /// All ways are open, and nothing gets lost.
    pub fn heal(&self) {
        let state = &mut *self.lock();
        state.cuts.clear();
        state.lost = 0;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
