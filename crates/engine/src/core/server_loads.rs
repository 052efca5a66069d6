//! The load of each database server: its batches in flight, and the shards that want to commit.
//!
//! A change of one shard changes one account, so a turn costs as much as shards have changed, however many
//! there are.

use std::{collections::BTreeSet, time::Duration};

use crate::index::{ServerIndex, ShardIndex};

/// Target time for one round over all shards of a server.
const ROUND_TARGET: Duration = Duration::from_millis(5);

/// The size of the batch that a shard wants to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchSize {
    /// It costs its server less than the statements around it do.
    Small,
    /// More than that.
    Large,
    /// As much as a batch may have. It gains nothing by waiting.
    Full,
}

/// The load that one shard adds to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ShardLoad {
    /// Its batch is in flight, and not for long.
    pub busy: bool,
    /// How long its turn will take; zero if it has nothing to do.
    pub takes: Duration,
    /// The batch that it wants to commit; `None` while one is in flight.
    pub wants: Option<BatchSize>,
}

/// The load of one server.
#[derive(Debug, Default)]
struct ServerLoad {
    /// Batches in flight.
    in_flight: usize,
    /// How long it would take if each shard that has something to do had its turn, one after the other.
    round: Duration,
    /// Shards that want to commit a small batch.
    small: BTreeSet<ShardIndex>,
    /// Shards that want to commit a large one.
    large: BTreeSet<ShardIndex>,
    /// Shards that want to commit a full one.
    full: BTreeSet<ShardIndex>,
    /// Shards from this one on come first, so that none is passed over.
    next: ShardIndex,
}

/// The load of every server.
#[derive(Debug, Default)]
pub(crate) struct ServerLoads {
    /// By the server's position.
    servers: Vec<ServerLoad>,
    /// The load that each shard adds, by its position.
    shards: Vec<ShardLoad>,
    /// Servers whose load has changed: one of their shards may be able to commit now.
    changed: BTreeSet<ServerIndex>,
}

impl ServerLoads {
    /// A shard has been added, and has nothing to do.
    pub fn add_shard(&mut self) {
        // A server has the position of its first shard.
        self.servers.push(ServerLoad::default());
        self.shards.push(ShardLoad::default());
    }

    /// A shard's load is now this one.
    pub fn update(&mut self, shard: ShardIndex, server: ServerIndex, load: ShardLoad) {
        let old = std::mem::replace(&mut self.shards[shard.0], load);
        if old == load {
            return;
        }
        self.changed.insert(server);
        let server = &mut self.servers[server.0];
        server.in_flight = server.in_flight + usize::from(load.busy) - usize::from(old.busy);
        server.round = server.round + load.takes - old.takes;
        if let Some(size) = old.wants {
            server.wanting(size).remove(&shard);
        }
        if let Some(size) = load.wants {
            server.wanting(size).insert(shard);
        }
    }

    /// Whether a shard waits for its turn.
    pub fn is_waiting(&self, shard: ShardIndex) -> bool {
        self.shards[shard.0].wants.is_some()
    }

    /// Whether [`ServerLoads::next`] may have a shard.
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// A shard that may commit now, if there is one. `most`: batches that a server has in flight while others
    /// wait.
    pub fn next(&mut self, most: usize) -> Option<ShardIndex> {
        while let Some(server) = self.changed.first().copied() {
            let next = self.servers[server.0].next(most);
            if next.is_some() {
                return next;
            }
            self.changed.pop_first();
        }
        None
    }
}

impl ServerLoad {
    fn next(&mut self, most: usize) -> Option<ShardIndex> {
        // However large the rounds are, a server that has nothing in flight takes any batch.
        let small = most.min(1 + (self.round.as_micros() / ROUND_TARGET.as_micros()) as usize);
        let candidates = [
            Some(&self.full),
            (self.in_flight < most.max(1)).then_some(&self.large),
            (self.in_flight < small.max(1)).then_some(&self.small),
        ];
        let first = self.next;
        let turn = |shard: &ShardIndex| (*shard < first, *shard);
        let next = |set: &BTreeSet<ShardIndex>| set.range(first..).next().or_else(|| set.first()).copied();
        let shard = candidates.into_iter().flatten().filter_map(next).min_by_key(turn)?;
        self.next = ShardIndex(shard.0 + 1);
        Some(shard)
    }

    fn wanting(&mut self, size: BatchSize) -> &mut BTreeSet<ShardIndex> {
        match size {
            BatchSize::Small => &mut self.small,
            BatchSize::Large => &mut self.large,
            BatchSize::Full => &mut self.full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerIndex = ServerIndex(0);

    fn load(busy: bool, wants: Option<BatchSize>) -> ShardLoad {
        ShardLoad { busy, takes: Duration::from_millis(1), wants }
    }

    /// One server of so many shards, each of which wants to commit a batch of this size.
    fn wanting(shards: usize, size: BatchSize) -> ServerLoads {
        let mut loads = ServerLoads::default();
        (0..shards).for_each(|_| loads.add_shard());
        for shard in (0..shards).map(ShardIndex) {
            loads.update(shard, SERVER, load(false, Some(size)));
        }
        loads
    }

    #[test]
    fn every_shard_has_its_turn() {
        let mut loads = wanting(3, BatchSize::Small);
        let mut served = Vec::new();
        for _ in 0..6 {
            let shard = loads.next(1).unwrap();
            loads.update(shard, SERVER, load(true, None));
            assert_eq!(loads.next(1), None, "one at a time");
            loads.update(shard, SERVER, load(false, Some(BatchSize::Small)));
            served.push(shard.0);
        }
        assert_eq!(served, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_full_batch_waits_for_nobody_and_a_large_one_for_few() {
        let mut loads = wanting(4, BatchSize::Small);
        loads.update(ShardIndex(0), SERVER, load(true, None));
        assert_eq!(loads.next(4), None, "a small one waits for any other");
        loads.update(ShardIndex(3), SERVER, load(false, Some(BatchSize::Large)));
        assert_eq!(loads.next(2), Some(ShardIndex(3)));
        loads.update(ShardIndex(3), SERVER, load(true, None));
        loads.update(ShardIndex(1), SERVER, load(false, Some(BatchSize::Large)));
        assert_eq!(loads.next(2), None);
        loads.update(ShardIndex(2), SERVER, load(false, Some(BatchSize::Full)));
        assert_eq!(loads.next(2), Some(ShardIndex(2)));
    }

    #[test]
    fn a_slow_server_is_given_several_small_batches() {
        let mut loads = wanting(4, BatchSize::Small);
        let slow = |busy, wants| ShardLoad { takes: Duration::from_millis(5), ..load(busy, wants) };
        for shard in (0..4).map(ShardIndex) {
            loads.update(shard, SERVER, slow(false, Some(BatchSize::Small)));
        }
        let mut at_once = 0;
        while let Some(shard) = loads.next(3) {
            loads.update(shard, SERVER, slow(true, None));
            at_once += 1;
        }
        assert_eq!(at_once, 3);
    }

    #[test]
    fn a_shard_that_is_lost_leaves_nothing_behind() {
        let mut loads = wanting(2, BatchSize::Large);
        loads.update(ShardIndex(0), SERVER, load(true, None));
        for shard in (0..2).map(ShardIndex) {
            loads.update(shard, SERVER, ShardLoad::default());
        }
        let server = &loads.servers[0];
        assert_eq!((server.in_flight, server.round, loads.next(4)), (0, Duration::ZERO, None));
    }
}
