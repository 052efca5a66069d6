//! The simulated machines: databases, processes, and the connections between them.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use forebay_engine::{
    Duty, Engine, FetchCall, FetchError, FetchedItems, Intake, KeyQuestion, ListedShard, OwnerAnswer,
    OwnerQuestion, Peers, Reach, RememberedKey, Setup, TaskName, Tasks as _,
};
use forebay_front::{Front, Links, watch_nodes};
use forebay_store::Shard;
use forebay_types::{Clock, ClusterId, ItemId, Namespace, Receipt, ShardId, Timestamp};
use futures_util::{Stream, stream::unfold};

use super::{
    caller_bug::CallerBug,
    clock::SimClock,
    cluster::{Cluster, Network},
    history::{Call, SentItem, Stall},
    links::{ForwardCounts, SimLinks},
    plan::{Kind, Plan},
    process::Node,
    tasks::{ProcessTasks, Still},
};
use crate::fake::{CatalogDb, Db, Dice, FakeShard, Journal, Life, Moment, Process};

/// When a run begins. It is the same in every run, so that runs can be repeated.
const BASE: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

/// State that the clients share: receipts to settle, and calls whose outcome is unknown.
#[derive(Debug, Default)]
pub struct SharedReceipts {
    /// Deliveries in progress: namespace number and receipt.
    pub held: Vec<(usize, Receipt)>,
    /// Deliveries that have ended or were settled once.
    pub old: Vec<(usize, Receipt)>,
    /// Enqueues that can be repeated: namespace number, items, request id.
    pub repeatable: Vec<(usize, Vec<SentItem>, Option<String>)>,
    /// Items that were stored: namespace number and id.
    pub stored: Vec<(usize, ItemId)>,
    /// Dedupe keys that were used: namespace number and key.
    pub keys: Vec<(usize, String)>,
    /// Request ids that were used, by any tenant.
    pub requests: Vec<String>,
    /// The last item's number.
    pub tags: u64,
}

/// Where a process answers.
pub fn address(process: usize) -> String {
    format!("node{process}:7420")
}

/// The addresses of the other processes that live, as one of them hears of it without a catalog.
fn others(nodes: Arc<Mutex<Vec<Node>>>, own: String) -> impl Stream<Item = Vec<String>> + Send {
    unfold((nodes, own), |(nodes, own)| async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let living = {
            let nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
            let others = nodes.iter().filter(|node| node.process.life() != Life::Dead);
            others.map(|node| node.address.clone()).filter(|address| *address != own).collect()
        };
        Some((living, (nodes, own)))
    })
}

/// Everything that a run consists of.
pub struct World {
    /// The plan.
    pub plan: Plan,
    /// The order of events.
    pub journal: Arc<Journal>,
    /// The shards' databases.
    pub dbs: Vec<Db>,
    /// Every call.
    pub calls: Mutex<Vec<Call>>,
    /// State that the clients share.
    pub receipts: Mutex<SharedReceipts>,
    /// Deaths of processes.
    pub deaths: Mutex<Vec<(usize, Moment)>>,
    /// Graceful stops with healthy shards: the process, when it was told to stop, and when it had stopped.
    pub stops: Mutex<Vec<(usize, Moment, Moment)>>,
    /// Processes that were told to stop, and when.
    pub told: Mutex<Vec<(usize, Moment)>>,
    /// Processes and tasks that stood still, and for how long.
    pub stalls: Mutex<Vec<Stall>>,
    /// Violations that the run itself noticed.
    pub violations: Mutex<Vec<(&'static str, String)>>,
    /// Fates of calls between processes.
    pub forwarded: Arc<Mutex<ForwardCounts>>,
    /// The catalog and the network between nodes, in runs with a catalog.
    cluster: Option<Cluster>,
    /// Every process so far.
    nodes: Arc<Mutex<Vec<Node>>>,
    /// The shards with which a new process begins, and of which those that run are told.
    configured: Mutex<Vec<(ShardId, Intake)>>,
    /// Processes that were told of other shards while they ran.
    pub told_shards: AtomicU64,
    /// Keys that one process found for another one.
    found_elsewhere: Arc<AtomicU64>,
}

impl World {
    /// Databases with schemas, without a process.
    pub async fn new(plan: Plan, dice: &mut Dice) -> Self {
        let journal = Arc::new(Journal::new(BASE, plan.trace));
        let ids = (1..=plan.shards).map(|id| ShardId(id as u32));
        let dbs: Vec<Db> = ids.map(|id| Db::new(id, journal.clone(), dice.fork())).collect();
        for db in &dbs {
            let shard = FakeShard::new(db.clone(), Process::new(0));
            shard.migrate(ClusterId::default()).await.expect("a healthy fake shard");
            let state = &mut *db.lock();
            state.bug = plan.store_bug;
            state.batch_bytes = plan.batch_bytes;
            if plan.exact_time() {
                state.dedupe_window = plan.settings.dedupe_window;
            }
            if plan.one_server {
                state.server = "memory".to_owned();
            }
            if plan.kind == Kind::Cluster {
                state.server = format!("db{}", db.id.0 as usize % plan.servers);
            }
        }
        let cluster = (plan.kind == Kind::Cluster).then(|| {
            let catalog = CatalogDb::new(journal.clone(), dice.fork());
            catalog.lock().bug = plan.catalog_bug;
            Cluster::new(catalog, Network::new(dice.fork()))
        });
        let configured = Mutex::new(dbs.iter().map(|db| (db.id, Intake::Open)).collect());
        Self {
            plan,
            journal,
            dbs,
            calls: Mutex::default(),
            receipts: Mutex::default(),
            deaths: Mutex::default(),
            stops: Mutex::default(),
            told: Mutex::default(),
            stalls: Mutex::default(),
            violations: Mutex::default(),
            forwarded: Arc::default(),
            cluster,
            nodes: Arc::default(),
            configured,
            told_shards: AtomicU64::new(0),
            found_elsewhere: Arc::default(),
        }
    }

    /// Starts a process.
    pub fn start(&self, seed: u64, clock_offset: i64) -> Node {
        let number = self.nodes().len() + 1;
        let process = Process::new(number);
        let address = address(number);
        let clock = Arc::new(SimClock::new(self.journal.clone(), clock_offset));
        let configured = self.configured();
        let shards = self.listed(&process);
        self.journal.note(format_args!("process {number} starts with shards {configured:?}"));
        let tasks = ProcessTasks::default();
        let links = self.plan.forwards.then(|| Arc::new(self.links(address.clone(), seed, None)));
        let engine = Engine::start_with(Setup {
            settings: self.plan.settings_of(number),
            address: address.clone(),
            shards,
            duty: Duty::Own,
            reach: if self.plan.forwards { Reach::All } else { Reach::Own },
            clock: clock.clone() as Arc<dyn Clock>,
            peers: Arc::new(SimPeers {
                nodes: self.nodes.clone(),
                found: self.found_elsewhere.clone(),
                links: links.clone(),
            }),
            tasks: Arc::new(tasks.clone()),
            seed,
        });
        let links = links.map(|links| links as Arc<dyn Links>);
        if let Some(links) = links.clone() {
            let others = others(self.nodes.clone(), address.clone());
            let watching = watch_nodes(engine.clone(), links, Arc::new(tasks.clone()), others);
            tasks.start(TaskName::Watch, Box::pin(watching));
        }
        let front = Front::new(engine.clone(), links);
        let shards = configured.into_iter().map(|(id, _)| id).collect();
        let node = Node { process, engine, front, tasks, shards, clock, address, member: None };
        self.nodes().push(node.clone());
        node
    }

    /// The way to other processes from the one at `own`.
    pub fn links(&self, own: String, seed: u64, network: Option<(usize, Arc<Network>)>) -> SimLinks {
        SimLinks {
            own,
            nodes: self.nodes.clone(),
            dice: Mutex::new(Dice::new(seed ^ 0x11_4b5)),
            forgets: self.plan.caller_bug == Some(CallerBug::LostCountsAsUnsent),
            forwarded: self.forwarded.clone(),
            is_older: if self.plan.older { |number| number % 3 != 0 } else { |_| false },
            network,
        }
    }

    /// Kills a process, as a power failure would: its tasks end wherever they are.
    pub fn kill(&self, node: &Node) {
        let moment = self.journal.note(format_args!("process {} dies", node.process.number));
        self.deaths.lock().unwrap_or_else(PoisonError::into_inner).push((node.process.number, moment));
        node.process.set(Life::Dead);
        node.tasks.end();
    }

    /// The shards with which a new process begins.
    pub fn configured(&self) -> Vec<(ShardId, Intake)> {
        self.configured.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on, new processes begin with these shards.
    pub fn configure(&self, shards: Vec<(ShardId, Intake)>) {
        *self.configured.lock().unwrap_or_else(PoisonError::into_inner) = shards;
    }

    /// The same, as a process reaches them.
    fn listed(&self, process: &Process) -> Vec<ListedShard> {
        let listed = self.configured().into_iter().filter_map(|(id, intake)| {
            let db = self.dbs.iter().find(|db| db.id == id)?;
            let shard = Arc::new(FakeShard::new(db.clone(), process.clone()));
            Some(ListedShard { id, shard, intake })
        });
        listed.collect()
    }

    /// A process that runs is told which shards there are now.
    pub fn tell(&self, node: &Node) {
        let (number, configured) = (node.process.number, self.configured());
        self.journal.note(format_args!("process {number} is told of shards {configured:?}"));
        self.told_shards.fetch_add(1, Ordering::Relaxed);
        node.engine.set_shards(self.listed(&node.process));
    }

    /// How many keys one process has found for another one.
    pub fn found_elsewhere(&self) -> u64 {
        self.found_elsewhere.load(Ordering::Relaxed)
    }

    /// Lets parts of a process stand still.
    pub fn stand_still(&self, node: &Node, what: &[Still]) {
        let process = node.process.number;
        let begin = self.journal.note(format_args!("process {process}: {what:?} stand still"));
        what.iter().for_each(|still| node.tasks.stand_still(*still));
        let stall = Stall { process, whole: what.contains(&Still::Process), begin, end: None };
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).push(stall);
    }

    /// Lets a process go on.
    pub fn go_on(&self, node: &Node) {
        let process = node.process.number;
        let end = self.journal.note(format_args!("process {process} goes on"));
        let stalls = &mut *self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        let open = stalls.iter_mut().filter(|stall| stall.process == process && stall.end.is_none());
        open.for_each(|stall| stall.end = Some(end));
        node.tasks.go_on();
    }

    /// The catalog and the network between nodes. Only in runs with a catalog.
    pub fn cluster(&self) -> &Cluster {
        self.cluster.as_ref().expect("a run with a catalog")
    }

    /// Every process so far, for those that outlive the call.
    pub fn all_nodes(&self) -> Arc<Mutex<Vec<Node>>> {
        self.nodes.clone()
    }

    /// Every process so far.
    pub fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The living processes, oldest first.
    pub fn alive(&self) -> Vec<Node> {
        self.nodes().iter().filter(|node| node.process.life() != Life::Dead).cloned().collect()
    }

    /// Returns the state that the clients share.
    pub fn receipts(&self) -> MutexGuard<'_, SharedReceipts> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a violation.
    pub fn blame(&self, invariant: &'static str, what: impl Into<String>) {
        let what = what.into();
        self.journal.note(format_args!("VIOLATION: {invariant}: {what}"));
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push((invariant, what));
    }

    /// How many calls are recorded.
    pub fn recorded(&self) -> usize {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The calls recorded after the first `before`.
    pub fn calls_since(&self, before: usize) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)[before..].to_vec()
    }

    /// Records a call.
    pub fn record(&self, call: Call) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

/// How long a question to another process may take.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);

/// Asks other processes. A living one answers, if its event loop turns. One that is cut off from its shards
/// answers in every other epoch: in the others it is cut off from its peers too.
struct SimPeers {
    /// Every process.
    nodes: Arc<Mutex<Vec<Node>>>,
    /// Counts keys that were found.
    found: Arc<AtomicU64>,
    /// The way on which calls are passed on, in runs with one.
    links: Option<Arc<SimLinks>>,
}

impl SimPeers {
    /// The process at an address, if it would answer. One that is cut off from its shards may be `reached`.
    fn at(&self, address: &str, reached: bool) -> Option<Node> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = |node: &Node| match node.process.life() {
            Life::Running => !node.tasks.is_still(),
            Life::CutOff => !node.tasks.is_still() && reached,
            Life::Dead => false,
        };
        nodes.iter().find(|node| node.address == address && runs(node)).cloned()
    }
}

#[async_trait]
impl Peers for SimPeers {
    async fn ask(&self, address: &str, question: OwnerQuestion) -> OwnerAnswer {
        let asked = self.at(address, question.epoch.is_multiple_of(2));
        let answer = async {
            match asked {
                Some(node) => node.tasks.serve(node.engine.owns(question)).await,
                None => std::future::pending().await,
            }
        };
        tokio::time::sleep(Duration::from_millis(1)).await;
        tokio::time::timeout(ASK_TIMEOUT, answer).await.unwrap_or(OwnerAnswer::Silent)
    }

    async fn lease_items(&self, address: &str, call: FetchCall) -> Result<FetchedItems, FetchError> {
        self.links.as_ref().ok_or(FetchError::Failed)?.fetch(address, call).await
    }

    async fn return_items(&self, address: &str, namespace: Namespace, receipts: Vec<Receipt>) {
        if let Some(links) = &self.links {
            links.return_items(address, namespace, receipts).await;
        }
    }

    async fn consume_items(&self, address: &str, namespace: Namespace, receipts: Vec<Receipt>) -> Vec<bool> {
        match &self.links {
            Some(links) => links.consume_items(address, namespace, receipts).await,
            None => vec![false; receipts.len()],
        }
    }

    async fn find_keys(&self, address: &str, question: KeyQuestion) -> Option<Vec<RememberedKey>> {
        // Some answers are long on their way.
        let byte = u64::from(question.keys.iter().flatten().copied().next().unwrap_or(0));
        let delay = if byte.is_multiple_of(4) { 3 * byte } else { byte / 8 };
        tokio::time::sleep(Duration::from_millis(1)).await;
        let node = self.at(address, false)?;
        let hits = node.tasks.serve(node.engine.find_keys(question)).await?;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        self.found.fetch_add(hits.len() as u64, Ordering::Relaxed);
        Some(hits)
    }
}
