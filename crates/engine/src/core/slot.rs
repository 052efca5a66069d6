//! A configured shard, whether the node owns it or not.

use std::ops::{Index, IndexMut};

use forebay_types::{Monotonic, Reason, Refusal, ShardId};
use tokio::sync::mpsc::UnboundedSender;

use super::health::Health;
use crate::{
    api::{BreakerPhase, RETRY_AFTER, ShardState},
    index::{ServerIndex, ShardIndex},
    io::reads::Reads,
    messages::shard::ShardOrder,
    shard::OwnedShard,
};

/// A shard that the node owns, and the way to read it.
pub(crate) struct Holding {
    /// Its memory.
    pub shard: OwnedShard,
    /// Reads it, in the name of the current term.
    pub reads: Reads,
}

/// A configured shard.
pub(crate) struct Slot {
    /// Its number.
    pub id: ShardId,
    /// Which server keeps it.
    pub server: ServerIndex,
    /// Counts the rounds of its task: each ends in a take-over and its loss. What an earlier term reports is
    /// dropped.
    pub term: u64,
    /// What the node owns of it.
    pub holding: Option<Box<Holding>>,
    /// Whether the node owns it, for operators.
    pub state: ShardState,
    /// How it is doing.
    pub health: Health,
    /// Its next batch is deferred until another shard of the same server has committed.
    pub deferred: bool,
    /// Its task's inbox.
    pub tasks: UnboundedSender<ShardOrder>,
}

impl Slot {
    /// A shard that the node has not looked at yet.
    pub fn new(id: ShardId, server: ServerIndex, tasks: UnboundedSender<ShardOrder>, at: Monotonic) -> Self {
        Self {
            id,
            server,
            term: 0,
            holding: None,
            state: ShardState::Starting,
            health: Health::new(at),
            deferred: false,
            tasks,
        }
    }

    /// The shard, if the node owns it.
    pub fn owned(&self) -> Option<&OwnedShard> {
        self.holding.as_ref().map(|holding| &holding.shard)
    }

    /// The node owns the shard, in this term.
    pub fn is_current(&self, term: u64) -> bool {
        self.term == term && self.holding.is_some()
    }

    /// It may take new items. Of a half-open breaker one batch is a probe; the rest is stored in other
    /// shards.
    pub fn is_healthy(&self) -> bool {
        self.owned().is_some_and(|shard| match self.health.phase() {
            BreakerPhase::Closed => true,
            BreakerPhase::HalfOpen => shard.can_probe(),
            BreakerPhase::Open => false,
        })
    }

    /// Its ready items take part in the merge.
    pub fn is_merged(&self) -> bool {
        self.holding.is_some() && self.health.phase() != BreakerPhase::Open
    }

    /// Why it takes nothing for now.
    pub fn refusal(&self) -> Refusal {
        let id = self.id;
        let (reason, message) = if self.holding.is_none() && self.state == ShardState::Waiting {
            (Reason::NotOwner, format!("shard {id} is owned by another node"))
        } else {
            (Reason::ShardUnavailable, format!("shard {id} is unavailable"))
        };
        Refusal::new(reason, message).retry_after(RETRY_AFTER)
    }
}

/// The configured shards.
pub(crate) struct Slots(Vec<Slot>);

impl Slots {
    /// In the order of the configuration.
    pub fn new(slots: Vec<Slot>) -> Self {
        Self(slots)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.0.iter()
    }

    /// The positions of all shards.
    pub fn indexes(&self) -> impl Iterator<Item = ShardIndex> + use<> {
        (0..self.0.len()).map(ShardIndex)
    }

    /// The same, with their slots.
    pub fn entries(&self) -> impl Iterator<Item = (ShardIndex, &Slot)> {
        self.0.iter().enumerate().map(|(index, slot)| (ShardIndex(index), slot))
    }

    /// The position of a shard.
    pub fn index_of(&self, id: ShardId) -> Option<ShardIndex> {
        self.0.iter().position(|slot| slot.id == id).map(ShardIndex)
    }

    /// A shard, if the node owns it.
    pub fn owned(&self, index: ShardIndex) -> Option<&OwnedShard> {
        self[index].owned()
    }

    /// A shard, if the node owns it.
    pub fn owned_mut(&mut self, index: ShardIndex) -> Option<&mut OwnedShard> {
        self[index].holding.as_mut().map(|holding| &mut holding.shard)
    }

    /// A shard and the way to read it, if its items take part in the merge.
    pub fn merged_mut(&mut self, index: ShardIndex) -> Option<&mut Holding> {
        let slot = &mut self[index];
        if slot.is_merged() { slot.holding.as_deref_mut() } else { None }
    }
}

impl Index<ShardIndex> for Slots {
    type Output = Slot;

    fn index(&self, index: ShardIndex) -> &Slot {
        &self.0[index.0]
    }
}

impl IndexMut<ShardIndex> for Slots {
    fn index_mut(&mut self, index: ShardIndex) -> &mut Slot {
        &mut self.0[index.0]
    }
}
