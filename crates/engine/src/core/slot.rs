//! The shards that the node has to do with, whether it owns them or not.

use std::{
    collections::BTreeSet,
    ops::{Index, IndexMut},
    sync::Arc,
};

use forebay_types::{Elsewhere, Monotonic, Reason, Refusal, ShardId};
use rustc_hash::FxHashMap;
use tokio::sync::{
    mpsc::{UnboundedSender, unbounded_channel},
    watch,
};

pub(crate) use super::holding::ReadableShard;
use super::{fitness::Fitness, health::Health};
use crate::{
    api::{BreakerPhase, Duty, Intake, RETRY_AFTER, Reach, ShardState},
    claim::{DeniedTenure, HandOver},
    index::{ServerIndex, ShardIndex},
    io::launch::TaskHandle,
    messages::shard::ShardOrder,
    shard::OwnedShard,
};

/// A shard.
pub(crate) struct Slot {
    /// Its number.
    pub id: ShardId,
    /// Which server keeps it.
    pub server: ServerIndex,
    /// Counts the rounds of its task: each ends in a take-over and its loss. What an earlier term reports is
    /// dropped.
    pub term: u64,
    /// Its memory, if the node owns it.
    pub holding: Option<Box<ReadableShard>>,
    /// Whether the node owns it, for operators.
    pub state: ShardState,
    /// How it is doing.
    pub health: Health,
    /// Its task's inbox.
    pub tasks: UnboundedSender<ShardOrder>,
    /// The node's duty for it, as its task sees it.
    pub duty: watch::Sender<Duty>,
    /// Where its owner answers, `host:port`, if another node is. Empty: nobody is, or that is not known.
    pub owner: String,
    /// That owner has shown no sign of life for a whole shard lease.
    pub silent: bool,
    /// All is done for its take-over that can be while another node owns it.
    pub prepared: bool,
    /// The tenure that this node has denied last: nobody is answered in it.
    pub denied: DeniedTenure,
    /// The reasons against this node as its owner.
    pub fitness: Fitness,
    /// The node owns it, and is about to hand it over.
    pub hand_over: Option<HandOver>,
    /// Its server lets nobody take the shard. The log says that of the server.
    pub server_fails: bool,
    /// Whether it takes new items.
    pub intake: Intake,
    /// It is not one of the node's shards any more. Its slot stays, because positions must not change.
    removed: bool,
    /// It is in the list of changed shards.
    changed: bool,
    /// It is in the list of shards whose fitness is to be looked at again.
    unchecked: bool,
    /// Its ready items took part in the merge when that was looked at.
    was_merged: bool,
    /// When time alone makes something due in it.
    wake: Option<Monotonic>,
}

impl Slot {
    /// A shard that the node has not looked at yet.
    pub fn new(id: ShardId, server: ServerIndex, health: Health, task: TaskHandle, intake: Intake) -> Self {
        let TaskHandle { orders: tasks, duty } = task;
        Self {
            id,
            server,
            term: 0,
            holding: None,
            state: ShardState::Starting,
            health,
            tasks,
            duty,
            owner: String::new(),
            silent: false,
            prepared: false,
            denied: DeniedTenure::default(),
            fitness: Fitness::default(),
            hand_over: None,
            server_fails: false,
            intake,
            removed: false,
            changed: false,
            unchecked: false,
            was_merged: false,
            wake: None,
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

    /// It may take new items.
    pub fn is_healthy(&self) -> bool {
        self.is_merged() && self.intake == Intake::Open
    }

    /// Its ready items take part in the merge. A breaker that is not closed lets no caller through: the shard
    /// is probed by a batch of its own.
    pub fn is_merged(&self) -> bool {
        self.holding.is_some() && self.hand_over.is_none() && self.health.phase() == BreakerPhase::Closed
    }

    /// Another node owns it, or is about to.
    pub fn is_elsewhere(&self) -> bool {
        match self.holding {
            Some(_) => self.hand_over.is_some(),
            None => self.state == ShardState::Waiting || !self.duty.borrow().is_own(),
        }
    }

    /// Another node serves it, or is about to, as far as is known.
    pub fn is_served_elsewhere(&self) -> bool {
        self.is_served_by(|_| true)
    }

    /// Such a node serves it, or is about to, as far as is known.
    pub fn is_served_by(&self, is_such: impl FnOnce(&str) -> bool) -> bool {
        let is_known = |owner: &str| !owner.is_empty() && is_such(owner);
        self.holding.is_none() && self.is_elsewhere() && self.with_owner(is_known)
    }

    /// The node at this address serves it, or is about to, as far as is known.
    pub fn is_served_at(&self, address: &str) -> bool {
        self.is_served_by(|owner| owner == address)
    }

    /// The node to ask instead of this one: the owner, or the next one where it has none.
    pub fn elsewhere(&self) -> Elsewhere {
        Elsewhere { shard: self.id, owner: self.with_owner(str::to_owned) }
    }

    /// Passes that node's address on. It is empty if there is none.
    fn with_owner<T>(&self, with: impl FnOnce(&str) -> T) -> T {
        match (&self.hand_over, &*self.duty.borrow()) {
            (Some(hand_over), _) => with(&hand_over.successor),
            (None, _) if !self.silent && !self.owner.is_empty() => with(&self.owner),
            (None, Duty::Leave { successor }) if *successor != self.owner => with(successor),
            _ => with(""),
        }
    }

    /// Why it takes no new items, as long as operators say so.
    pub fn intake_refusal(&self) -> Option<Refusal> {
        (self.intake == Intake::Closed).then(|| {
            let message = format!("shard {} takes no new items: it is drained", self.id);
            Refusal::new(Reason::ShardDraining, message)
        })
    }

    /// Why it takes nothing for now.
    pub fn refusal(&self) -> Refusal {
        let id = self.id;
        let refusal = if self.removed {
            Refusal::new(Reason::ShardUnavailable, format!("shard {id} was removed"))
        } else if self.hand_over.is_some() {
            Refusal::not_owner(self.elsewhere(), format!("shard {id} is being handed over to another node"))
        } else if self.is_elsewhere() {
            Refusal::not_owner(self.elsewhere(), format!("shard {id} is owned by another node"))
        } else {
            Refusal::new(Reason::ShardUnavailable, format!("shard {id} is unavailable"))
        };
        refusal.retry_after(RETRY_AFTER)
    }
}

/// A shard that operators let new items into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ActiveShard {
    /// Its position.
    pub index: ShardIndex,
    /// Its number.
    pub id: ShardId,
    /// It takes items now: it is healthy, or of another node where the node reaches that far.
    pub is_open: bool,
}

/// The shards. A turn of the event loop looks at those that may have changed, and at those for which
/// something is due: whoever gets a slot to change it marks it as changed.
#[derive(Default)]
pub(crate) struct Slots {
    /// In the order in which they were added. A removed one leaves an empty slot behind.
    slots: Vec<Slot>,
    /// The position of each that was not removed.
    by_id: FxHashMap<ShardId, ShardIndex>,
    /// Shards that may have changed since [`Slots::take_changed`].
    changed: Vec<ShardIndex>,
    /// Where new items may be placed.
    reach: Reach,
    /// Shards that may have changed since it was looked at which are active, open and merged.
    unchecked: Vec<ShardIndex>,
    /// The active shards as they were then, in the order of their positions.
    active: Arc<Vec<ActiveShard>>,
    /// How many shards took part in the merge then.
    merged: usize,
    /// When time alone makes something due in a shard.
    wakes: BTreeSet<(Monotonic, ShardIndex)>,
}

impl Slots {
    /// None yet. `reach`: where new items are placed.
    pub fn new(reach: Reach) -> Self {
        Self { reach, ..Self::default() }
    }

    /// Where new items are placed.
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// The position of the shard that is added next.
    pub fn next_index(&self) -> ShardIndex {
        ShardIndex(self.slots.len())
    }

    /// The server of this name, if it keeps, or kept, one of the shards.
    pub fn server_of(&self, name: &str) -> Option<ServerIndex> {
        self.slots.iter().find(|slot| slot.health.server() == name).map(|slot| slot.server)
    }

    /// Adds a shard. Returns its position.
    pub fn add(&mut self, slot: Slot) -> ShardIndex {
        let index = self.next_index();
        self.by_id.insert(slot.id, index);
        self.slots.push(slot);
        self.mark_changed(index);
        index
    }

    /// Removes a shard, which is not owned any more. Its task gives it up, and ends.
    pub fn remove(&mut self, index: ShardIndex) {
        let slot = &mut self[index];
        let _ = slot.tasks.send(ShardOrder::Stop);
        // The task ends with the other ends of its channels, whatever it does.
        slot.tasks = unbounded_channel().0;
        slot.duty = watch::channel(Duty::Leave { successor: String::new() }).0;
        slot.removed = true;
        slot.owner.clear();
        let id = slot.id;
        self.by_id.remove(&id);
        self.set_wake(index, None);
    }

    /// The shards that were not removed.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| !slot.removed)
    }

    /// Their positions.
    pub fn indexes(&self) -> impl Iterator<Item = ShardIndex> + use<> {
        let indexes: Vec<ShardIndex> = self.entries().map(|(index, _)| index).collect();
        indexes.into_iter()
    }

    /// The same, with their slots.
    pub fn entries(&self) -> impl Iterator<Item = (ShardIndex, &Slot)> {
        let entries = self.slots.iter().enumerate().map(|(index, slot)| (ShardIndex(index), slot));
        entries.filter(|(_, slot)| !slot.removed)
    }

    /// Whether a shard does not answer this node.
    pub fn is_silent(&self, id: ShardId) -> bool {
        let slot = self.index_of(id).map(|index| &self[index]);
        slot.is_some_and(|slot| slot.state == ShardState::Unreachable || slot.health.silent_since().is_some())
    }

    /// Whether a shard was removed.
    pub fn is_removed(&self, index: ShardIndex) -> bool {
        self.slots[index.0].removed
    }

    /// The position of a shard.
    pub fn index_of(&self, id: ShardId) -> Option<ShardIndex> {
        self.by_id.get(&id).copied()
    }

    /// Takes the shards that may have changed, in the order of their positions.
    pub fn take_changed(&mut self) -> Vec<ShardIndex> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.iter().for_each(|index| self.slots[index.0].changed = false);
        changed.sort_unstable();
        changed
    }

    /// Time alone makes something due in a shard then.
    pub fn set_wake(&mut self, index: ShardIndex, wake: Option<Monotonic>) {
        let old = std::mem::replace(&mut self.slots[index.0].wake, wake);
        if old == wake {
            return;
        }
        if let Some(old) = old {
            self.wakes.remove(&(old, index));
        }
        self.wakes.extend(wake.map(|wake| (wake, index)));
    }

    /// When something is due in some shard.
    pub fn next_wake(&self) -> Option<Monotonic> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Marks the shards in which something is due.
    pub fn mark_due(&mut self, at: Monotonic) {
        while let Some((wake, index)) = self.wakes.first().copied()
            && wake <= at
        {
            self.wakes.pop_first();
            self.slots[index.0].wake = None;
            self.mark_changed(index);
        }
    }

    fn mark_changed(&mut self, index: ShardIndex) {
        let slot = &mut self.slots[index.0];
        if !std::mem::replace(&mut slot.changed, true) {
            self.changed.push(index);
        }
        if !std::mem::replace(&mut slot.unchecked, true) {
            self.unchecked.push(index);
        }
    }

    /// The active shards, in the order of their positions. It looks at those that may have changed, and at no
    /// other: there may be hundreds.
    pub fn active(&mut self) -> Arc<Vec<ActiveShard>> {
        self.check_fitness();
        self.active.clone()
    }

    fn as_active(reach: Reach, index: ShardIndex, slot: &Slot) -> Option<ActiveShard> {
        let is_open = || slot.is_healthy() || reach == Reach::All && slot.is_served_elsewhere();
        (slot.intake == Intake::Open && !slot.removed).then(|| ActiveShard {
            index,
            id: slot.id,
            is_open: is_open(),
        })
    }

    /// Whether the ready items of some shard take part in the merge.
    pub fn is_any_merged(&mut self) -> bool {
        self.check_fitness();
        self.merged > 0
    }

    /// Whether it is known which shards are open and merged, of those that did not change. Checked in the
    /// simulation.
    #[cfg(feature = "planted-bugs")]
    pub fn check(&self) -> Result<(), String> {
        let known = |index| {
            let place = self.active.binary_search_by_key(&index, |shard| shard.index);
            place.ok().map(|place| self.active[place])
        };
        let agrees = |index, slot: &Slot| {
            let active = Self::as_active(self.reach, index, slot);
            slot.unchecked || active == known(index) && slot.is_merged() == slot.was_merged
        };
        let merged = self.slots.iter().filter(|slot| slot.was_merged).count();
        match self.entries().find(|(index, slot)| !agrees(*index, slot)) {
            Some((_, slot)) => Err(format!("what is known of shard {} is out of date", slot.id)),
            None if merged == self.merged => Ok(()),
            None => Err(format!("{merged} shards are merged, counted as {}", self.merged)),
        }
    }

    fn check_fitness(&mut self) {
        while let Some(index) = self.unchecked.pop() {
            let slot = &mut self.slots[index.0];
            slot.unchecked = false;
            let merged = slot.is_merged();
            let was_merged = std::mem::replace(&mut slot.was_merged, merged);
            self.merged = self.merged + usize::from(merged) - usize::from(was_merged);
            let place = self.active.binary_search_by_key(&index, |shard| shard.index);
            match (place, Self::as_active(self.reach, index, slot)) {
                (Ok(place), None) => drop(Arc::make_mut(&mut self.active).remove(place)),
                (Ok(place), Some(active)) if self.active[place] != active => {
                    Arc::make_mut(&mut self.active)[place] = active;
                }
                (Err(place), Some(active)) => Arc::make_mut(&mut self.active).insert(place, active),
                (Ok(_), Some(_)) | (Err(_), None) => {}
            }
        }
    }

    /// A shard, if the node owns it.
    pub fn owned(&self, index: ShardIndex) -> Option<&OwnedShard> {
        self[index].owned()
    }

    /// A shard, if the node owns it.
    pub fn owned_mut(&mut self, index: ShardIndex) -> Option<&mut OwnedShard> {
        self[index].holding.as_mut().map(|holding| &mut holding.shard)
    }

    /// A shard, if its items take part in the merge.
    pub fn merged(&self, index: ShardIndex) -> Option<&OwnedShard> {
        let slot = &self[index];
        if slot.is_merged() { slot.owned() } else { None }
    }

    /// A shard and the way to read it, if its items take part in the merge.
    pub fn merged_mut(&mut self, index: ShardIndex) -> Option<&mut ReadableShard> {
        let slot = &mut self[index];
        if slot.is_merged() { slot.holding.as_deref_mut() } else { None }
    }
}

impl Index<ShardIndex> for Slots {
    type Output = Slot;

    fn index(&self, index: ShardIndex) -> &Slot {
        &self.slots[index.0]
    }
}

impl IndexMut<ShardIndex> for Slots {
    fn index_mut(&mut self, index: ShardIndex) -> &mut Slot {
        self.mark_changed(index);
        &mut self.slots[index.0]
    }
}
