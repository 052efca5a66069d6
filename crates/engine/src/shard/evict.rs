//! Keeps the ready index within its budget.

use super::OwnedShard;
use crate::planted::{Bug, on};

impl OwnedShard {
    /// Drops what lies furthest back in the greatest windows, until the budget holds with an eighth to spare.
    ///
    /// A head stays, without its body: else the heads of many topics would be read again and again. They are
    /// bounded by the number of topics.
    pub fn evict(&mut self) {
        let budget = self.index_budget;
        if self.held_bytes() <= budget || on(Bug::NeverEvicts) {
            return;
        }
        let target = budget - budget / 8;
        while self.held_bytes() > target
            && let Some(id) = self.topics.largest()
        {
            self.topics.with_window(id, |window| match window.len() {
                0 | 1 => window.drop_bodies(),
                items => window.evict(items / 2),
            });
            if let Some(topic) = self.topics.get_mut(id) {
                topic.shrink_fill();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shard::{
        ready::item::ITEM_OVERHEAD_BYTES,
        tests::{T, items, shard, store},
    };

    #[test]
    fn the_greatest_window_is_cut_and_a_head_stays() {
        let mut shard = shard();
        store(&mut shard, 0, items(8));
        shard.index_budget = 7 * ITEM_OVERHEAD_BYTES;
        shard.evict();
        let window = |shard: &crate::shard::OwnedShard| shard.topics.get(T).unwrap().window().len();
        assert_eq!((window(&shard), shard.check()), (4, Ok(())));
        shard.index_budget = 0;
        shard.evict();
        assert_eq!((window(&shard), shard.topics.largest(), shard.check()), (1, None, Ok(())));
    }
}
