//! The end of every way: nodes go on until nobody wants any change more.

use super::{Scenario, State};

/// Rounds that are enough: each moves two shards of a node at least, and takes half a minute.
const ROUNDS: usize = 12;

impl State {
    /// Plays the end.
    pub(super) fn end(&mut self, scenario: &Scenario) {
        // Drafts from before are written first, in any case.
        let drafts: Vec<_> = self.drafts.iter_mut().filter_map(Option::take).collect();
        drafts.into_iter().for_each(|draft| self.write(scenario, draft));
        self.settled = false;
        for _ in 0..ROUNDS {
            self.now += 1;
            for shard in 0..self.owners.len() {
                self.owners[shard] = self.catalog.homes[shard].map(|(node, _)| node);
            }
            match self.draft() {
                Some(draft) => self.write(scenario, draft),
                None => {
                    self.settled = true;
                    break;
                }
            }
        }
        self.over = true;
    }

    /// Pins that an operator was told are done stay so, as long as the node lives.
    pub(super) fn keeps_pins(&self) -> bool {
        let stays = |(shard, node): &(usize, usize)| {
            !self.catalog.alive[*node] || self.catalog.homes[*shard] == Some((*node, true))
        };
        self.pins.iter().all(stays)
    }

    /// Living nodes have numbers of shards within one of each other. Pins go first: one pinned shard fits.
    pub(super) fn is_even(&self) -> bool {
        let alive = &self.catalog.alive;
        let count =
            |node: usize| self.catalog.homes.iter().filter(|it| it.is_some_and(|it| it.0 == node)).count();
        let counts = || (0..alive.len()).filter(|node| alive[*node]).map(count);
        let most = counts().max().unwrap_or_default();
        counts().all(|count| count + 1 >= most) && counts().sum::<usize>() == self.catalog.homes.len()
    }

    /// Every shard is owned by its home.
    pub(super) fn is_at_home(&self) -> bool {
        let homes = self.catalog.homes.iter().map(|home| home.map(|(node, _)| node));
        homes.zip(&self.owners).all(|(home, owner)| home == *owner)
    }
}
