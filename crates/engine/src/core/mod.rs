//! The node's memory, parts only: each file is one part with private fields and the operations on it. What
//! is done with them is in `calls`, `dispatch`, `commit` and `ownership`.

pub(crate) mod active_index;
pub(crate) mod breaker;
#[cfg(feature = "planted-bugs")]
mod check;
pub(crate) mod consumers;
pub(crate) mod fates;
pub(crate) mod fetches;
mod fitness;
pub(crate) mod health;
mod holding;
pub(crate) mod latencies;
pub(crate) mod listing;
mod listing_slices;
pub(crate) mod lookups;
pub(crate) mod lost_shard;
mod news;
pub(crate) mod oldest_ready;
pub(crate) mod orders;
pub(crate) mod peer_loads;
pub(crate) mod pending_calls;
pub(crate) mod policies;
pub(crate) mod polls;
pub(crate) mod prefixes;
pub(crate) mod questions;
pub(crate) mod refusals;
pub(crate) mod remote;
pub(crate) mod server_loads;
pub(crate) mod slot;
mod sources;
pub(crate) mod stopping;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod timers;
mod topic_turns;
pub(crate) mod topics;
pub(crate) mod touch;
pub(crate) mod traffic;
pub(crate) mod visits;
pub(crate) mod watchers;

use std::{collections::VecDeque, sync::Arc};

use forebay_store::Shard;
#[cfg(feature = "planted-bugs")]
use forebay_types::Monotonic;
use forebay_types::ShardId;
use rand::{RngExt, rngs::StdRng};
use tokio::sync::{mpsc::UnboundedSender, watch};

use self::{
    active_index::ActiveIndexes,
    consumers::Consumers,
    fetches::Fetches,
    health::Health,
    latencies::RecentLatencies,
    listing::Listing,
    lookups::Lookups,
    lost_shard::LostShard,
    oldest_ready::OldestReady,
    orders::Orders,
    peer_loads::PeerLoads,
    pending_calls::PendingCalls,
    policies::Policies,
    polls::Polls,
    prefixes::Prefixes,
    questions::Questions,
    remote::RemoteTopics,
    server_loads::ServerLoads,
    slot::{Slot, Slots},
    stopping::StopState,
    timers::Timers,
    topics::TopicDirectory,
    traffic::Traffic,
    watchers::Watchers,
};
use crate::{
    api::{ByIntake, Intake, ListedShard, Reach, Settings, ShardCounts, ShardState, TurnStatus},
    clock::NodeTime,
    index::{ServerIndex, ShardIndex},
    io::launch::Launcher,
    messages::{event::Event, tenant_budget::TenantBudget},
    planted::is_older,
    routing::key_homes::KeyHomes,
};

/// All that the node knows. The event loop is its only writer.
pub(crate) struct Core {
    /// How the engine works.
    pub settings: Arc<Settings>,
    /// The node's time.
    pub time: NodeTime,
    /// Random numbers for nonces.
    pub rng: StdRng,
    /// Starts the tasks of shards.
    pub launcher: Launcher,
    /// The shards.
    pub slots: Slots,
    /// Topics over all shards, and who waits for them.
    pub topics: TopicDirectory,
    /// Shards whose topics come into the directory, or leave it.
    pub listing: Listing,
    /// Shards that were lost, as long as something that waited for them has no answer.
    pub lost: VecDeque<LostShard>,
    /// The policies and settings of topics and namespaces.
    pub policies: Policies,
    /// Dequeue calls.
    pub polls: Polls,
    /// The consumers that asked for items lately.
    pub consumers: Consumers,
    /// Calls whose members are answered one by one.
    pub calls: PendingCalls,
    /// Orders to operations.
    pub orders: Orders,
    /// Where dedupe keys have their homes.
    pub homes: KeyHomes,
    /// Lookups of dedupe keys.
    pub lookups: Lookups,
    /// Lookups for other nodes.
    pub questions: Questions,
    /// The order of active topics, where somebody asks for it.
    pub active: ActiveIndexes,
    /// The prefixes by which consumers ask for topics.
    pub prefixes: Prefixes,
    /// The oldest item that is first in its topic.
    pub oldest_ready: OldestReady,
    /// Timers of polls, pages, topics and policies.
    pub timers: Timers,
    /// Numbers for reads and calls.
    pub ids: Ids,
    /// The highest rank given out.
    pub rank: i64,
    /// The load of each database server.
    pub loads: ServerLoads,
    /// The load of other nodes' shards.
    pub peer_loads: PeerLoads,
    /// Topics of other nodes, as these tell of them.
    pub remote: RemoteTopics,
    /// Items that are being leased at other nodes.
    pub fetches: Fetches,
    /// Other nodes that follow topics of this one.
    pub watchers: Watchers,
    /// Metrics of namespaces and topics.
    pub traffic: Traffic,
    /// How long that took lately, by topic.
    pub latencies: RecentLatencies,
    /// The event loop's work.
    pub turns: TurnStatus,
    /// Whether the engine stops.
    pub stopping: StopState,
    /// The event loop's own inbox.
    pub events: UnboundedSender<Event>,
    /// Receives how many shards are served.
    pub served: watch::Sender<ShardCounts>,
    /// When the parts may be checked again.
    #[cfg(feature = "planted-bugs")]
    pub next_check: Monotonic,
}

/// Numbers that are never used twice.
#[derive(Debug, Default)]
pub(crate) struct Ids(u64);

impl Ids {
    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

impl Core {
    /// Of an engine that has just started, and has no shards yet. `admitted`: bytes of enqueues that are not
    /// answered yet.
    pub fn new(
        settings: Settings,
        time: NodeTime,
        rng: StdRng,
        launcher: Launcher,
        reach: Reach,
        admitted: Arc<TenantBudget>,
        served: watch::Sender<ShardCounts>,
    ) -> Self {
        let homes = KeyHomes::new(settings.longest_dedupe_window(), time.monotonic());
        let followed_bytes = settings.followed_bytes;
        let (events, reported) = (launcher.events.clone(), settings.reported.clone());
        Self {
            settings: Arc::new(settings),
            time,
            rng,
            launcher,
            slots: Slots::new(reach),
            topics: TopicDirectory::default(),
            listing: Listing::default(),
            lost: VecDeque::new(),
            policies: Policies::default(),
            polls: Polls::default(),
            consumers: Consumers::default(),
            calls: PendingCalls::new(admitted),
            homes,
            lookups: Lookups::default(),
            questions: Questions::default(),
            orders: Orders::default(),
            active: ActiveIndexes::default(),
            prefixes: Prefixes::default(),
            oldest_ready: OldestReady::default(),
            timers: Timers::default(),
            ids: Ids::default(),
            rank: i64::MIN,
            loads: ServerLoads::default(),
            peer_loads: PeerLoads::default(),
            remote: RemoteTopics::new(followed_bytes),
            fetches: Fetches::default(),
            watchers: Watchers::new(followed_bytes),
            traffic: Traffic::new(reported),
            latencies: RecentLatencies::default(),
            turns: TurnStatus::default(),
            stopping: StopState::default(),
            events,
            served,
            #[cfg(feature = "planted-bugs")]
            next_check: Monotonic::default(),
        }
    }

    /// Begins with these shards.
    pub fn begin_with(&mut self, shards: Vec<ListedShard>) {
        let ByIntake { active, draining } = ByIntake::of(&shards);
        for ListedShard { id, shard, intake } in shards {
            self.add_shard(id, shard, intake);
        }
        self.homes.begin(active, draining);
    }

    /// Adds a shard, and starts its task.
    pub fn add_shard(&mut self, id: ShardId, shard: Arc<dyn Shard>, intake: Intake) {
        let (index, server) = (self.slots.next_index(), shard.server());
        let health = Health::new(id, server.clone(), self.time.monotonic());
        let server = self.slots.server_of(&server).unwrap_or(ServerIndex(index.0));
        let task = self.launcher.launch(index, id, shard, self.rng.random());
        self.slots.add(Slot::new(id, server, health, task, intake));
        self.loads.add_shard();
    }

    /// Shares the bytes of ready index and cached bodies out among the shards that the node owns.
    pub fn share_index(&mut self) {
        let owned: Vec<ShardIndex> =
            self.slots.entries().filter(|(_, slot)| slot.holding.is_some()).map(|(index, _)| index).collect();
        let budget = self.settings.index_bytes / owned.len().max(1);
        for index in owned {
            if let Some(shard) = self.slots.owned_mut(index) {
                shard.set_index_budget(budget);
            }
        }
    }

    /// Whether every node that a caller may ask knows of calls that name their shard.
    pub fn knows_named_shards(&self) -> bool {
        let is_alone = self.slots.reach() == Reach::Own;
        !is_older(&self.launcher.address) && (is_alone || self.peer_loads.all_know_named_shards())
    }

    /// Tells those who follow it how many shards are served.
    pub fn report_served(&self) {
        let silent = self.slots.iter().filter(|slot| slot.silent && slot.holding.is_none()).count();
        let mut served = ShardCounts { silent, ..ShardCounts::default() };
        for slot in self.slots.iter() {
            served.linked += usize::from(slot.is_served_by(|owner| self.remote.is_linked(owner)));
            match slot.state {
                _ if slot.holding.is_some() => served.owned += 1,
                _ if !slot.duty.borrow().is_own() => {}
                ShardState::Starting => served.starting += 1,
                ShardState::Waiting => served.waiting += 1,
                ShardState::Owned | ShardState::Unreachable | ShardState::Stopped => {}
            }
        }
        self.served.send_if_modified(|told| std::mem::replace(told, served) != served);
    }
}
