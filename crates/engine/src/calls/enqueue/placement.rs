//! Where items go that nothing binds to a shard.
//!
//! Each topic has a set of shards, the same as every node sees it. Its items go to the best two of them that
//! take any, and to twice as many where these have more than a batch to do. A shard that is sick, full or
//! overloaded stays in the set: others of it take its part meanwhile, so a consumer finds all of the topic
//! there. Only if nothing in the set takes items do they go beyond it.

use std::sync::Arc;

use forebay_types::{Namespace, Refusal, Topic};
use rustc_hash::FxHashMap;

use crate::{
    api::Avoid,
    core::{Core, slot::ActiveShard},
    index::ShardIndex,
    routing::rendezvous::{Ranking, SHARDS_IN_SET, SHARDS_PER_TOPIC, hash},
};

/// The shards that a call's items may go to.
pub(super) struct Candidates {
    /// All that are active.
    active: Arc<Vec<ActiveShard>>,
    /// Of two shards of other nodes that suit a topic equally, calls take the first one and the second one in
    /// turn: 0 or 1.
    turn: usize,
    /// The bytes that the call brings to each shard that it uses already.
    used: FxHashMap<ShardIndex, usize>,
    /// The topic of the last item, and how well they suit it. A call's items mostly have the same topic.
    ranked: Option<(Topic, Ranking<ActiveShard>)>,
}

/// The room of a shard for more items.
struct Room {
    /// The rows that wait there. Where its owner has not told them lately, they count as one batch.
    backlog: usize,
    /// The node owns it.
    is_own: bool,
}

/// How well a shard suits an item: the least is the best.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    /// The call has not used it yet.
    is_new: bool,
    /// It is not of this node, where that matters, or has more than a batch to do.
    is_far: bool,
    /// The rows that wait there, where they matter.
    backlog: usize,
    /// Its place among those that take items.
    number: usize,
}

impl Candidates {
    /// For a call that has this number, without what it avoids.
    pub fn new(core: &mut Core, avoid: &Avoid, call: u64) -> Self {
        let slots = &mut core.slots;
        let mut active = slots.active();
        if *avoid != Avoid::default() {
            let is_own = |index: ShardIndex| slots.owned(index).is_some();
            // A node without shards has only those of others.
            let others = avoid.others && active.iter().any(|shard| shard.is_open && is_own(shard.index));
            for shard in Arc::make_mut(&mut active) {
                let slot = &slots[shard.index];
                let of_node = |address: &String| slot.is_served_at(address);
                let avoided = avoid.shards.contains(&shard.id)
                    || others && !is_own(shard.index)
                    || avoid.nodes.iter().any(of_node);
                shard.is_open &= !avoided;
            }
        }
        Self { active, turn: usize::from(call % 2 == 1), used: FxHashMap::default(), ranked: None }
    }

    /// An item of the call goes to this shard.
    pub fn uses(&mut self, shard: ShardIndex, bytes: usize) {
        *self.used.entry(shard).or_default() += bytes;
    }

    /// The shard that takes an item of a topic. If all are full it is the first, and that refuses the call.
    /// `None`: no shard is open.
    pub fn place(
        &mut self,
        core: &Core,
        namespace: &Namespace,
        topic: &Topic,
        charge: usize,
    ) -> Option<ShardIndex> {
        let (turn, batch) = (self.turn, core.settings.batch_rows);
        self.choose(core, namespace, topic, charge, |Room { backlog, is_own }, found, is_new| {
            let number = if is_own { found } else { found ^ turn };
            Load { is_new, is_far: !is_own || backlog >= batch, backlog, number }
        })
    }

    /// The shard that the next call for a topic is to name: the first of its set with less than a batch to
    /// do, whoever owns it, since the call goes there. So all nodes propose the same one, and a topic's
    /// producers and consumers meet at its owner.
    pub fn propose(&mut self, core: &Core, namespace: &Namespace, topic: &Topic) -> Option<ShardIndex> {
        let batch = core.settings.batch_rows;
        self.choose(core, namespace, topic, 0, |Room { backlog, .. }, number, is_new| {
            let is_far = backlog >= batch;
            Load { is_new, is_far, backlog: if is_far { backlog } else { 0 }, number }
        })
    }

    /// The shard with the least load. `load_of` makes it of a shard's room, its place among those that take
    /// items, and whether the call has not used it yet.
    fn choose(
        &mut self,
        core: &Core,
        namespace: &Namespace,
        topic: &Topic,
        charge: usize,
        load_of: impl Fn(Room, usize, bool) -> Load,
    ) -> Option<ShardIndex> {
        self.rank(namespace, topic);
        let Self { used, ranked: Some((_, ranking)), .. } = self else { return None };
        let (mut best, mut first_open) = (None, None);
        let (mut found, mut spread, mut crowded) = (0, SHARDS_PER_TOPIC, true);
        for position in 0.. {
            if position == SHARDS_IN_SET && found > 0 {
                break;
            }
            let Some(shard) = ranking.get(position) else { break };
            if !shard.is_open {
                continue;
            }
            first_open.get_or_insert(shard.index);
            let bytes = used.get(&shard.index).copied().unwrap_or(0) + charge;
            let Some(room) = room(core, namespace, shard, bytes) else { continue };
            // A topic that brings more than its shards commit in a batch spreads to twice as many.
            if found == spread {
                if !crowded {
                    break;
                }
                spread *= 2;
            }
            crowded &= room.backlog > core.settings.batch_rows;
            let load = load_of(room, found, !used.contains_key(&shard.index));
            if best.as_ref().is_none_or(|(least, _)| load < *least) {
                best = Some((load, shard.index));
            }
            found += 1;
        }
        best.map(|(_, shard)| shard).or(first_open)
    }

    /// Ranks the shards for a topic, unless that was done last.
    fn rank(&mut self, namespace: &Namespace, topic: &Topic) {
        if self.ranked.as_ref().is_none_or(|(last, _)| last != topic) {
            let key = hash(&[namespace.as_bytes(), topic.as_bytes()]);
            let shards = self.active.iter().map(|shard| (*shard, shard.id));
            self.ranked = Some((topic.clone(), Ranking::new(key, shards)));
        }
    }
}

/// The room of a shard for so many bytes more of a tenant. `None`: it takes no items, as far as is known.
fn room(core: &Core, namespace: &str, shard: ActiveShard, bytes: usize) -> Option<Room> {
    let at = core.time.monotonic();
    if let Some(owned) = core.slots.owned(shard.index) {
        let is_full = owned.over_budget(namespace, bytes, at).is_some();
        return (!is_full).then(|| Room { backlog: owned.backlog(), is_own: true });
    }
    let slot = &core.slots[shard.index];
    let backlog = match core.peer_loads.of(shard.id, at, |node| slot.is_served_at(node)) {
        Some(load) if !load.takes_items || load.bytes + bytes > core.settings.admit_shard_bytes => {
            return None;
        }
        Some(load) => load.rows,
        None => core.settings.batch_rows,
    };
    Some(Room { backlog, is_own: false })
}

/// Why a shard does not take so many bytes more, if it does not.
pub(super) fn over_budget(core: &Core, namespace: &str, shard: ShardIndex, bytes: usize) -> Option<Refusal> {
    core.slots.owned(shard)?.over_budget(namespace, bytes, core.time.monotonic())
}

#[cfg(test)]
mod tests {
    use forebay_types::ShardId;
    use tokio::sync::{mpsc::unbounded_channel, watch};

    use super::*;
    use crate::{
        api::{Duty, Intake, Reach, ShardLoad, ShardState},
        core::{
            health::Health,
            slot::{Slot, Slots},
        },
        index::ServerIndex,
        io::launch::TaskHandle,
    };

    /// A node that knows so many shards, all of another node.
    fn core_with_shards(shards: u32) -> Core {
        let mut core = Core::for_test();
        core.slots = Slots::new(Reach::All);
        for id in (1..=shards).map(ShardId) {
            let health = Health::new(id, "db1:3306".into(), core.time.monotonic());
            let duty = watch::channel(Duty::Leave { successor: String::new() }).0;
            let task = TaskHandle { orders: unbounded_channel().0, duty };
            let mut slot = Slot::new(id, ServerIndex(0), health, task, Intake::Open);
            (slot.state, slot.owner) = (ShardState::Waiting, "there:1".to_owned());
            core.slots.add(slot);
        }
        core
    }

    /// The shards that suit a topic, the best first.
    fn ranked(core: &mut Core, topic: &str) -> Vec<ShardId> {
        let mut candidates = Candidates::new(core, &Avoid::default(), 0);
        candidates.rank(&"ns".into(), &topic.into());
        let ranking = &mut candidates.ranked.unwrap().1;
        (0..).map_while(|position| ranking.get(position)).map(|shard| shard.id).collect()
    }

    fn placed(core: &mut Core, topic: &str, avoided: &[ShardId], call: u64) -> Option<ShardId> {
        let avoid = Avoid { shards: avoided.to_vec(), ..Avoid::default() };
        let mut candidates = Candidates::new(core, &avoid, call);
        let place = candidates.place(core, &"ns".into(), &topic.into(), 1);
        place.map(|index| core.slots[index].id)
    }

    #[test]
    fn items_go_beyond_the_set_only_if_nothing_in_it_takes_them() {
        let mut core = core_with_shards(12);
        for topic in ["a", "b", "c"] {
            let ranked = ranked(&mut core, topic);
            for avoided in 0..12 {
                let found: [_; 2] = [0, 1].map(|call| placed(&mut core, topic, &ranked[..avoided], call));
                // The last one of the set has no second one beside it.
                let second =
                    if avoided == SHARDS_IN_SET - 1 || avoided == 11 { avoided } else { avoided + 1 };
                assert_eq!(found, [avoided, second].map(|place| Some(ranked[place])), "{topic}, {avoided}");
            }
            assert_eq!(placed(&mut core, topic, &ranked, 0), None);
        }
    }

    #[test]
    fn every_node_proposes_the_first_shard_that_has_less_than_a_batch_to_do() {
        let mut core = core_with_shards(12);
        let ranked = ranked(&mut core, "a");
        let proposed = |core: &mut Core, call| {
            let proposed =
                Candidates::new(core, &Avoid::default(), call).propose(core, &"ns".into(), &"a".into());
            proposed.map(|index| core.slots[index].id)
        };
        assert_eq!([0, 1].map(|call| proposed(&mut core, call)), [Some(ranked[0]); 2], "nothing is known");
        let batch = core.settings.batch_rows;
        told(&mut core, ranked[0], batch - 1, true);
        told(&mut core, ranked[1], 0, true);
        assert_eq!([0, 1].map(|call| proposed(&mut core, call)), [Some(ranked[0]); 2]);
        told(&mut core, ranked[0], batch, true);
        assert_eq!(proposed(&mut core, 0), Some(ranked[1]));
        told(&mut core, ranked[1], batch + 1, true);
        assert_eq!(proposed(&mut core, 0), Some(ranked[0]), "the smaller backlog");
        told(&mut core, ranked[0], 0, false);
        assert_eq!(proposed(&mut core, 0), Some(ranked[2]), "the first one takes no items");
    }

    #[test]
    fn a_shard_that_is_out_of_reach_stays_in_the_set() {
        let mut core = core_with_shards(12);
        let before = ranked(&mut core, "a");
        let index = core.slots.index_of(before[0]).unwrap();
        core.slots[index].owner.clear();
        assert_eq!(ranked(&mut core, "a"), before);
        assert_eq!(placed(&mut core, "a", &[], 0), Some(before[1]));
        core.slots[index].intake = Intake::Closed;
        assert_eq!(ranked(&mut core, "a"), before[1..], "a drained one leaves it");
    }

    /// The other node tells of a shard.
    fn told(core: &mut Core, shard: ShardId, rows: usize, takes_items: bool) {
        let load = ShardLoad { shard, rows, bytes: rows, takes_items };
        let at = core.time.monotonic();
        core.peer_loads.set_nodes(vec!["there:1".to_owned()]);
        core.peer_loads.report("there:1", std::iter::once(load), at);
    }

    #[test]
    fn of_two_shards_elsewhere_the_less_loaded_one_is_taken_and_none_that_takes_nothing() {
        let mut core = core_with_shards(12);
        let ranked = ranked(&mut core, "a");
        told(&mut core, ranked[0], 9, true);
        assert_eq!(placed(&mut core, "a", &[], 1), Some(ranked[0]), "the other one counts as a batch");
        told(&mut core, ranked[1], 8, true);
        assert_eq!(placed(&mut core, "a", &[], 0), Some(ranked[1]));
        core.peer_loads.sent(ranked[1], 1);
        core.peer_loads.sent(ranked[1], 1);
        assert_eq!(placed(&mut core, "a", &[], 0), Some(ranked[0]));
        for shard in &ranked[..SHARDS_IN_SET] {
            told(&mut core, *shard, 0, false);
        }
        assert_eq!(placed(&mut core, "a", &[], 0), Some(ranked[SHARDS_IN_SET]));
        let bytes = core.settings.admit_shard_bytes;
        told(&mut core, ranked[3], bytes - 1, true);
        assert_eq!(placed(&mut core, "a", &[], 0), Some(ranked[3]), "one byte fits");
        told(&mut core, ranked[3], bytes, true);
        assert_eq!(placed(&mut core, "a", &[], 0), Some(ranked[SHARDS_IN_SET]));
    }
}
