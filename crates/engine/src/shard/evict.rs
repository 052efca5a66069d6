//! Keeps the ready index within its budget.

use std::collections::BTreeMap;

use forebay_types::TopicId;

use super::OwnedShard;

impl OwnedShard {
    /// Drops what lies furthest back in the greatest windows, until the budget holds with an eighth to spare.
    pub fn evict(&mut self) {
        let budget = self.index_budget;
        if self.held_bytes() <= budget {
            return;
        }
        let target = budget - budget / 8;
        let mut by_cost: BTreeMap<(usize, TopicId), usize> = BTreeMap::new();
        for (id, topic) in self.topics.iter() {
            if topic.window().cost() > 0 {
                by_cost.insert((topic.window().cost(), id), topic.window().len());
            }
        }
        while self.held_bytes() > target {
            let Some(((_, id), len)) = by_cost.pop_last() else { return };
            if len <= 1 {
                // A head stays, without its body: else the heads of many topics would be read again and
                // again.
                self.topics.with_window(id, |window| window.drop_bodies());
                continue;
            }
            self.topics.with_window(id, |window| window.evict(len / 2));
            if let Some(topic) = self.topics.get_mut(id) {
                topic.shrink_fill();
                if topic.window().len() > 0 {
                    by_cost.insert((topic.window().cost(), id), topic.window().len());
                }
            }
        }
    }
}
