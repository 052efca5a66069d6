//! Keeps the ready index within its budget.

use super::OwnedShard;
use crate::planted::{Bug, on};

/// Windows that are cut at once: of very many small ones each frees little.
const CUTS_MAX: usize = 500;

impl OwnedShard {
    /// Drops what lies furthest back in the greatest windows, until the budget holds with an eighth to spare,
    /// or until many windows were cut. Then it goes on in the next turn.
    ///
    /// A head stays, without its body: else the heads of many topics would be read again and again. They are
    /// bounded by the number of topics.
    pub fn evict(&mut self) {
        let budget = self.index_budget;
        if self.held_bytes() <= budget && !self.evicts_on || on(Bug::NeverEvicts) {
            return;
        }
        let target = budget - budget / 8;
        self.evicts_on = false;
        for _ in 0..CUTS_MAX {
            let Some(id) = self.topics.largest().filter(|_| self.held_bytes() > target) else { return };
            self.topics.with_window(id, |window| match window.len() {
                0 | 1 => window.drop_bodies(),
                items => window.evict(items / 2),
            });
            if let Some(topic) = self.topics.get_mut(id) {
                topic.shrink_fill();
            }
        }
        self.evicts_on = true;
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::ReadyRow;
    use forebay_types::{Body, TopicId};

    use super::*;
    use crate::shard::{
        ready::item::{ITEM_OVERHEAD_BYTES, ReadyItem},
        tests::{T, at, items, moment, ready_row, shard, shard_with_topics, store},
        topics::TopicState,
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
        assert!(!shard.evicts_on, "what is left can't be dropped");
        assert_eq!((window(&shard), shard.topics.largest(), shard.check()), (1, None, Ok(())));
    }

    #[test]
    fn many_small_windows_are_cut_in_several_turns() {
        let mut shard = shard_with_topics(2 * CUTS_MAX as u32, 0);
        for id in (1..=2 * CUTS_MAX as u32).map(TopicId) {
            let body = Some(Body { payload: "body".into(), ..Body::default() });
            let (key, item) = ReadyItem::from_row(ReadyRow { body, ..ready_row(u64::from(id.0)) });
            shard.topics.with_window(id, |window| window.add(key, item));
        }
        shard.index_budget = 1;
        let has_body = |topic: &&TopicState| topic.window().size_class().is_some();
        let with_bodies =
            |shard: &OwnedShard| shard.topics.iter().map(|(_, topic)| topic).filter(has_body).count();
        for left in [CUTS_MAX, 0] {
            shard.evict();
            assert_eq!((with_bodies(&shard), shard.evicts_on), (left, true), "there may be more to cut");
            assert_eq!(shard.next_wake(moment(7), true), Some(at(7)));
        }
        shard.evict();
        assert!(!shard.evicts_on);
    }
}
