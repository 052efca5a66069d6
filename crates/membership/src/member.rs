//! The task of a node in a cluster with a catalog. Once a second, and whenever something has changed, it
//! takes one turn:
//!
//! 1. It asks the engine what it sees of the shards. Where the engine does not answer, the node does not say
//!    that it lives.
//! 2. It says that it lives, and which database servers it reaches.
//! 3. It reads what has changed in the catalog, and tells the engine of policies, and of shards that were
//!    added, drained or removed.
//! 4. It plans. If shards should move, it changes the assignment by compare-and-set. Another may be faster.
//! 5. It tells the engine its duties. A shard that it owns is given only to a node that is ready to take it.
//!
//! The task is the only one that changes the engine's policies, shards and duties. If it fails half way, the
//! next turn begins anew: nothing is carried from turn to turn but what was seen. While the catalog does not
//! answer, policies, shards and duties stay as they are, but for shards without a living owner: those are
//! taken by the living nodes in turn.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use forebay_cluster::{ApplyOutcome, CatalogCopy, OUTVOTED_AFTER, Observer};
use forebay_engine::{Duty, Engine, ShardCounts, ShardSight, TaskName, Tasks};
use forebay_store::{Beat, Catalog, CatalogNode, CatalogView, ErrorClass, NodeReport, Sighting, StoreError};
use forebay_types::{Clock, Monotonic, NodeName, ShardId};
use futures_util::future::join_all;
use tokio::sync::{Notify, oneshot, watch};

use crate::{
    cluster_task::{ClusterTask, LeaveMode},
    duties,
    followed::EngineShards,
    join::JoinError,
    links::ClusterLinks,
    peer_reach::PeerReach,
    planted::{self, Bug},
    reach::Reach,
    shared::ClusterState,
};

/// How often a node says that it lives, and looks at the catalog.
const TURN_EVERY: Duration = Duration::from_secs(1);
/// The same while a shard waits for its next owner.
pub(crate) const HURRIED_TURN_EVERY: Duration = Duration::from_millis(100);
/// A node is dead once its counter has stood still for so long.
const DEAD_AFTER: Duration = Duration::from_secs(4);
/// A process that has been seen for so long has claimed the shards that are in its name.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(3);
/// A node whose shards were silent lives once its counter has moved so often.
pub(crate) const LIVES_AFTER: u64 = 2;
/// How long the catalog, or the engine, may take to answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// While the catalog does not answer, each next node waits so much longer before it takes a shard over. Nodes
/// notice up to [`TURN_EVERY`] apart that a shard has no owner, and further apart where the catalog hangs.
pub(crate) const TURN_STEP: Duration = TURN_EVERY;

/// The parts that the task of membership works with.
pub struct Membership {
    /// The catalog.
    pub catalog: Arc<dyn Catalog>,
    /// This node, as it joins.
    pub node: CatalogNode,
    /// The engine, which is told its duties.
    pub engine: Engine,
    /// The way to other nodes.
    pub links: Arc<dyn ClusterLinks>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where its tasks run.
    pub tasks: Arc<dyn Tasks>,
    /// Notified when another node has changed the catalog.
    pub catalog_changed: Arc<Notify>,
    /// Receives what the rest of the node is to know of the cluster.
    pub state: watch::Sender<Arc<ClusterState>>,
    /// Receives up to which version the engine knows the policies.
    pub policies_told: watch::Sender<u64>,
    /// The shards that the engine has.
    pub followed: EngineShards,
}

impl Membership {
    /// Joins the cluster, and takes part in it from then on. `is_away`: the copy is of an image, and the node
    /// joins once the catalog answers.
    pub async fn start(self, mut copy: CatalogCopy, is_away: bool) -> Result<ClusterTask, JoinError> {
        // It hands nothing out before it knows what is paused: it owns no shard yet.
        self.tell_policies(&mut copy);
        let own = self.node.name.clone();
        let tasks = self.tasks.clone();
        let (leave, asked_to_leave) = oneshot::channel();
        let (leaving, left) = oneshot::channel();
        let peers = PeerReach::start(&*tasks, self.links.clone(), self.state.subscribe(), self.clock.clone());
        let mut member = Member {
            setup: self,
            own,
            copy,
            observer: Observer::new(DEAD_AFTER),
            reach: Reach::default(),
            peers,
            unowned_since: BTreeMap::new(),
            silent: BTreeMap::new(),
            has_joined: false,
            rival: None,
            said: TroubleLog::default(),
            hurries: false,
        };
        member.wait_for_first_look().await;
        member.setup.node.report = member.report(&member.sights().await.unwrap_or_default());
        if !is_away {
            member.enter().await?;
        }
        let run = async move {
            member.run(asked_to_leave).await;
            drop(leaving);
        };
        tasks.start(TaskName::Membership, Box::pin(run));
        Ok(ClusterTask { leave, left })
    }
}

impl Membership {
    /// Tells the engine of policies that have changed.
    fn tell_policies(&self, copy: &mut CatalogCopy) {
        let changes = copy.take_policies();
        if !changes.is_nothing() {
            self.engine.set_policies(changes);
        }
        self.policies_told.send_replace(copy.known().policies);
    }
}

pub(crate) fn no_answer(limit: Duration) -> StoreError {
    StoreError::new(ErrorClass::Disconnected, format!("no answer within {limit:?}"))
}

/// The last log message of each kind of trouble. Trouble is logged once, until it is over.
#[derive(Default)]
pub(crate) struct TroubleLog {
    /// Why the catalog can't be used.
    pub(crate) catalog: String,
    /// Why the node can't join, once the catalog answers.
    pub(crate) join: String,
    /// The engine does not answer.
    engine: bool,
}

/// The task's own state.
pub(crate) struct Member {
    /// The parts that it works with.
    pub(crate) setup: Membership,
    /// This node's name.
    pub(crate) own: NodeName,
    /// The catalog as it was last read.
    pub(crate) copy: CatalogCopy,
    /// The history of nodes and homes.
    pub(crate) observer: Observer,
    /// Which database servers answered when.
    pub(crate) reach: Reach,
    /// Which other nodes answer.
    pub(crate) peers: PeerReach,
    /// Since when shards have had no living owner, while the catalog does not answer.
    pub(crate) unowned_since: BTreeMap<ShardId, Monotonic>,
    /// Nodes all of whose shards were silent, as they were then.
    pub(crate) silent: BTreeMap<NodeName, Sighting>,
    /// It has taken its name in the catalog.
    pub(crate) has_joined: bool,
    /// Another process that has this node's name, and since when its counter has been seen standing there.
    pub(crate) rival: Option<(Sighting, Monotonic)>,
    /// The troubles that were logged.
    pub(crate) said: TroubleLog,
    /// A shard waits for its next owner.
    pub(crate) hurries: bool,
}

impl Member {
    async fn run(mut self, mut asked_to_leave: oneshot::Receiver<LeaveMode>) {
        let mut served = self.setup.engine.served();
        let changed = self.setup.catalog_changed.clone();
        let how = loop {
            // A shard that falls silent during the turn is one more.
            let ShardCounts { silent, owned, .. } = *served.borrow_and_update();
            tokio::select! {
                biased;
                how = &mut asked_to_leave => break how,
                () = self.turn() => {}
            }
            let pause = if self.hurries { HURRIED_TURN_EVERY } else { TURN_EVERY };
            // Whoever asks the only node hears at once what it has taken over.
            let is_alone = self.setup.node.is_alone();
            let is_news = |now: &ShardCounts| now.silent > silent || is_alone && now.owned != owned;
            let news = served.wait_for(is_news);
            tokio::select! {
                biased;
                how = &mut asked_to_leave => break how,
                () = changed.notified() => {}
                _ = news => {}
                () = tokio::time::sleep(pause) => {}
            }
        };
        self.leave(how.ok()).await;
    }

    pub(crate) fn now(&self) -> Monotonic {
        self.setup.clock.monotonic()
    }

    /// The engine's sights of the shards. `None`: it does not answer.
    pub(crate) async fn sights(&self) -> Option<Vec<ShardSight>> {
        tokio::time::timeout(ANSWER_TIMEOUT, self.setup.engine.sights()).await.ok().flatten()
    }

    /// Waits until every shard was looked at: a node that says that it reaches no server would get none.
    async fn wait_for_first_look(&self) {
        let looked = async {
            while !self.sights().await.is_some_and(|sights| sights.iter().all(|sight| sight.looked_at)) {
                tokio::time::sleep(HURRIED_TURN_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(ANSWER_TIMEOUT, looked).await;
    }

    fn report(&mut self, sights: &[ShardSight]) -> NodeReport {
        let now = self.now();
        NodeReport { servers: self.reach.observe(sights, now), unreachable: self.peers.unreached() }
    }

    async fn turn(&mut self) {
        let Some(mut sights) = self.sights().await else {
            if planted::on(Bug::BeatsWhileHung) {
                let _ = self.look(&self.setup.node.report.clone()).await;
            }
            if !std::mem::replace(&mut self.said.engine, true) {
                tracing::error!(
                    "the engine does not answer; this node does not say that it lives until it does"
                );
            }
            return;
        };
        if std::mem::replace(&mut self.said.engine, false) {
            tracing::info!("the engine answers again");
        }
        self.hurries = false;
        let report = self.report(&sights);
        let was_away = !self.said.catalog.is_empty();
        // A catalog that hangs takes long to say so. Meanwhile all nodes would miss their turns, and then
        // have them at once.
        let next = if was_away { self.take_unowned(&sights) } else { None };
        let limit = next.map_or(ANSWER_TIMEOUT, |next| next.min(ANSWER_TIMEOUT));
        let in_time = tokio::time::timeout(limit, self.look(&report)).await;
        match in_time.unwrap_or_else(|_| Err(no_answer(ANSWER_TIMEOUT))) {
            Ok(()) if !self.has_joined && !self.enter_late().await => {}
            Ok(()) if self.rival.is_some() => {
                self.catalog_answers();
                self.give_all_up();
            }
            Ok(()) => {
                self.catalog_answers();
                self.follow_shards();
                // The catalog took its time. What was taken over meanwhile needs no other home.
                sights = self.sights().await.unwrap_or(sights);
                if tokio::time::timeout(ANSWER_TIMEOUT, self.assign(&sights)).await.is_err() {
                    self.catalog_fails(&no_answer(ANSWER_TIMEOUT));
                }
                self.take_up_duties(&sights).await;
            }
            Err(error) => {
                self.catalog_fails(&error);
                if !was_away {
                    self.take_unowned(&sights);
                }
            }
        }
        self.publish(&sights);
    }

    /// Says that the node lives, and reads what has changed.
    async fn look(&mut self, report: &NodeReport) -> Result<(), StoreError> {
        if !self.has_joined {
            return self.read().await;
        }
        let Membership { catalog, node, .. } = &self.setup;
        match catalog.beat(&node.name, node.incarnation, report).await? {
            Beat::Replaced => {
                // One that went back has forgotten who joined since. It is not asked to join.
                self.read().await?;
                self.join_again(report).await?;
            }
            // A catalog that went back, and forward again, has forgotten the other process.
            Beat::Ok if self.rival.take().is_some() => {
                tracing::warn!("the name {} is this process's again", self.own);
            }
            Beat::Ok => {}
        }
        if self.rival.is_some() { Ok(()) } else { self.read().await }
    }

    pub(crate) async fn read(&mut self) -> Result<(), StoreError> {
        if planted::on(Bug::FollowsOlderCatalog) {
            self.copy = CatalogCopy::default();
        }
        let changes = self.setup.catalog.read(self.copy.known()).await?;
        match self.copy.apply(changes) {
            ApplyOutcome::Updated => {}
            ApplyOutcome::Refused { why, is_new } => {
                if is_new {
                    tracing::error!("the catalog is not followed: {why}");
                }
                return Err(StoreError::new(ErrorClass::Unavailable, why.to_string()));
            }
        }
        self.setup.tell_policies(&mut self.copy);
        let now = self.now();
        if let Some(view) = self.copy.view() {
            self.observer.observe(view, now);
            let addresses: Vec<&str> = view.nodes.iter().map(|node| node.peer_address.as_str()).collect();
            self.setup.links.retain(&addresses);
        }
        Ok(())
    }

    fn catalog_answers(&mut self) {
        if !std::mem::take(&mut self.said.catalog).is_empty() {
            tracing::info!("the catalog answers again");
        }
        self.unowned_since.clear();
    }

    pub(crate) fn catalog_fails(&mut self, error: &StoreError) {
        let why = format!("the catalog does not answer: {error}");
        if self.said.catalog.is_empty() {
            tracing::warn!(%error, "{why}; going on with what is known");
        }
        self.said.catalog = why;
    }

    /// Tells the engine its duties. A shard that it owns stays its own until its next owner is ready.
    pub(crate) async fn take_up_duties(&mut self, sights: &[ShardSight]) {
        // A shard that was taken over meanwhile must not be given away unasked.
        let sights = &self.sights().await.unwrap_or_else(|| sights.to_vec());
        let Some(view) = self.copy.view() else { return };
        let mut duties = match self.setup.node.is_alone() {
            true => duties::all(view),
            false => duties::assigned(view, &self.own),
        };
        let owned: BTreeSet<ShardId> =
            sights.iter().filter(|sight| sight.owned).map(|sight| sight.id).collect();
        let given = duties.iter().filter_map(|(id, duty)| match duty {
            Duty::Leave { successor } if owned.contains(id) && !duties::is_offline(view, *id) => {
                Some((*id, successor.clone()))
            }
            _ => None,
        });
        let asked = given.map(async |(id, successor)| {
            let ready = self.gives_unasked(view, id) || self.setup.links.is_ready_for(&successor, id).await;
            (id, ready)
        });
        for (id, ready) in join_all(asked.collect::<Vec<_>>()).await {
            if !ready && !planted::on(Bug::GivesUnasked) {
                duties.insert(id, Duty::Own);
                self.hurries = true;
            }
        }
        self.setup.engine.set_duties(duties);
    }

    /// Whether the node gives a shard to its next owner without asking it. One that most others have not
    /// reached for long is of no use to them: where it does not reach the next owner either, the answer would
    /// come once the cut has healed. If that node is dead, anybody may take the shard a second later.
    fn gives_unasked(&self, view: &CatalogView, id: ShardId) -> bool {
        let is_outvoted = self
            .observer
            .grey
            .since(&self.own)
            .is_some_and(|since| self.now().since(since) >= OUTVOTED_AFTER);
        let home = view.assignment.homes.get(&id);
        is_outvoted
            && home.is_some_and(|home| self.peers.is_unreached(&home.node))
            && !planted::on(Bug::AsksUnreached)
    }
}
