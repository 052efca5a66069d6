//! The handle by which callers reach the engine.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use forebay_store::{OperationId, OperationOrder, Shard};
use forebay_types::{
    ALL_NAMESPACES, Clock, Namespace, PolicyChanges, Reason, Receipt, Refusal, ShardId, TopicName,
};
use rand::{SeedableRng, rngs::StdRng};
use tokio::sync::{
    mpsc::{UnboundedSender, unbounded_channel},
    oneshot, watch,
};

use crate::{
    api::{
        ActiveTopics, ActiveTopicsCall, ChangeCall, ChangeResult, DeliveredItem, DequeueCall,
        DesiredSettings, Duty, EnqueueCall, EnqueueOutcome, ExtendOf, ExtensionResult, FetchCall,
        FetchedItems, KeyQuestion, ListedShard, NackOf, Notice, OperationsSnapshot, OrderResult, OwnerAnswer,
        OwnerQuestion, PeerNews, Peers, RETRY_AFTER, Reach, RememberedKey, ReportedNamespaces, Settings,
        SettlementResult, Setup, ShardCounts, ShardLoad, ShardSight, Status, TaskName, TaskSupervisor, Tasks,
        content_of,
    },
    clock::NodeTime,
    core::{Core, refusals::draining},
    event_loop,
    io::{launch::Launcher, take_over_room::TakeOverRoom},
    messages::{
        event::Event,
        node_watch::NodeWatch,
        pending_dequeue::PendingDequeue,
        pulse::LoopPulse,
        reply::{Reply, received},
        tenant_budget::{Charge, OverBudget, TenantBudget, paid_by, payer},
    },
};

/// Bytes that an item is charged with at admission beside its body.
const ITEM_OVERHEAD_BYTES: usize = 256;

/// Bytes of a dequeue that waits, beside its topics: the poll, its timers, the caller's task and stream, and
/// the state of the call in the layers of the server. As measured with 10,000 of them.
const POLL_OVERHEAD_BYTES: usize = 7 << 10;
/// Bytes of each of its topics beside the name: the demand, the name's places in the directory, the topic
/// itself if it has no items.
const DEMAND_OVERHEAD_BYTES: usize = 320;

/// Bytes of items that are being leased for other nodes at one time; a tenant has a quarter.
const FETCHED_BYTES_MAX: usize = 64 << 20;

/// Bytes of a dequeue while it waits.
fn poll_bytes(call: &DequeueCall) -> usize {
    let demands = call.demands.iter().map(|demand| demand.topic.len() + DEMAND_OVERHEAD_BYTES);
    POLL_OVERHEAD_BYTES + call.consumer.len() + call.namespace.len() + demands.sum::<usize>()
}

/// The refusal of a call for which there is no room. It names the key of the limit.
fn over_budget(limit: &'static str, what: &str) -> Refusal {
    metrics::counter!("forebay_limit_refusals_total", "limit" => limit).increment(1);
    let message = format!("too many {what} (the limit is `{limit}`)");
    Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER)
}

/// A running engine. Cheap to clone; every clone reaches the same one.
#[derive(Clone)]
pub struct Engine {
    /// The event loop's inbox.
    events: UnboundedSender<Event>,
    /// Bytes of enqueues that are not answered yet.
    admitted: Arc<TenantBudget>,
    /// Bytes of dequeues that wait.
    waiting: Arc<TenantBudget>,
    /// Bytes of items that are being leased for other nodes.
    fetched: Arc<TenantBudget>,
    /// Numbers the polls, and the links to other nodes.
    polls: Arc<AtomicU64>,
    /// Namespaces that have metrics of their own.
    reported: ReportedNamespaces,
    /// How many shards are served.
    served: watch::Receiver<ShardCounts>,
    /// The message of the first task that panicked.
    failed: watch::Receiver<Option<String>>,
}

impl Engine {
    /// Starts the engine over these shards, on the current runtime; it takes them over in the background.
    /// `address` is where this process answers, `host:port`; `seed` makes everything random about it.
    pub fn start(
        settings: Settings,
        address: String,
        shards: Vec<(ShardId, Arc<dyn Shard>)>,
        clock: Arc<dyn Clock>,
        peers: Arc<dyn Peers>,
        seed: u64,
    ) -> Self {
        let (duty, reach, tasks) = (Duty::Own, Reach::Own, Arc::new(()));
        let shards = shards.into_iter().map(|(id, shard)| ListedShard::open(id, shard)).collect();
        Self::start_with(Setup { settings, address, shards, duty, reach, clock, peers, tasks, seed })
    }

    /// The same in every detail. What it is to do with its shards can be changed by [`Engine::set_duties`],
    /// and the shards by [`Engine::set_shards`].
    pub fn start_with(setup: Setup) -> Self {
        let Setup { settings, address, shards, duty, reach, clock, peers, tasks, seed } = setup;
        let (tasks, failed) = TaskSupervisor::new(tasks);
        let tasks: Arc<dyn Tasks> = Arc::new(tasks);
        let pulse = LoopPulse::default();
        let (events, inbox) = unbounded_channel();
        let (served_sender, served) = watch::channel(ShardCounts::default());
        let admitted = TenantBudget::new(settings.admit_bytes);
        let waiting = TenantBudget::new(settings.poll_bytes);
        let time = NodeTime::new(clock.clone());
        let shard_lease = settings.shard_lease;
        let launcher = Launcher {
            address,
            peers,
            clock,
            tasks: tasks.clone(),
            pulse: pulse.clone(),
            shard_lease,
            duty,
            events: events.clone(),
            take_overs: TakeOverRoom::default(),
        };
        let rng = StdRng::seed_from_u64(seed);
        let mut core = Core::new(settings, time, rng, launcher, reach, admitted.clone(), served_sender);
        core.begin_with(shards);
        // No link has the number 0.
        let (polls, reported) = (Arc::new(AtomicU64::new(1)), core.traffic.names().clone());
        tasks.start(TaskName::EventLoop, Box::pin(event_loop::run(core, inbox, pulse)));
        let fetched = TenantBudget::new(FETCHED_BYTES_MAX);
        Self { events, admitted, waiting, fetched, polls, reported, served, failed }
    }

    /// Stores items. The outer error refuses the whole call: nothing of it happened.
    pub async fn enqueue(&self, call: EnqueueCall) -> Result<Vec<Result<EnqueueOutcome, Refusal>>, Refusal> {
        self.enqueue_noting(call, None).await
    }

    /// The same. `notice` is told at once which items are for other nodes.
    pub async fn enqueue_noting(
        &self,
        call: EnqueueCall,
        notice: Option<Notice>,
    ) -> Result<Vec<Result<EnqueueOutcome, Refusal>>, Refusal> {
        if call.items.is_empty() {
            return Ok(Vec::new());
        }
        // The budget is taken before anything is buffered.
        let bytes: usize = call.items.iter().map(|item| item.body.bytes() + ITEM_OVERHEAD_BYTES).sum();
        let charge = self.admitted.take(&call.namespace, bytes).map_err(|over| match over {
            OverBudget::Tenant => {
                over_budget("memory.admit_bytes", "bytes wait to be stored for this namespace")
            }
            OverBudget::Node => over_budget("memory.admit_bytes", "bytes wait to be stored on this node"),
        })?;
        let content = call.request_id.is_some().then(|| content_of(&call.items));
        self.ask(|reply| Event::Enqueue { call, content, charge, notice, reply }).await
    }

    /// Leases items, waiting for them if asked to. What was leased for a caller that disconnects is released.
    pub async fn dequeue(&self, call: DequeueCall) -> Result<Vec<DeliveredItem>, Refusal> {
        self.begin_dequeue(call)?.items(|_| Ok(())).await
    }

    /// The same, where the caller waits by itself. Many may wait, so that little is kept meanwhile.
    pub fn begin_dequeue(&self, call: DequeueCall) -> Result<PendingDequeue, Refusal> {
        let charge = match call.wait.is_zero() {
            true => None,
            false => {
                Some(self.waiting.take(&call.namespace, poll_bytes(&call)).map_err(|over| match over {
                    OverBudget::Tenant => {
                        over_budget("memory.poll_bytes", "long polls of this namespace wait")
                    }
                    OverBudget::Node => over_budget("memory.poll_bytes", "long polls wait at this node"),
                })?)
            }
        };
        self.poll(call, charge)
    }

    fn poll(&self, call: DequeueCall, charge: Option<Charge>) -> Result<PendingDequeue, Refusal> {
        let (id, payer) = (self.polls.fetch_add(1, Ordering::Relaxed), payer());
        let (reply, answer) = Reply::channel();
        let pending = PendingDequeue::new(call.namespace.clone(), id, answer, self.events.clone());
        match self.events.send(Event::Dequeue { id, call, charge, payer, reply }) {
            Ok(()) => Ok(pending),
            Err(_) => Err(draining()),
        }
    }

    /// Leases items of this node's own shards for another node. Those that the caller drops on the way are
    /// returned.
    pub async fn lease_items(&self, call: FetchCall) -> Result<FetchedItems, Refusal> {
        let payer = call.payer.clone();
        let leased = async {
            let _charge =
                self.fetched.take(&call.name.namespace, call.max_bytes).map_err(|over| match over {
                    OverBudget::Tenant => over_budget("fetched bytes", "items of this namespace are fetched"),
                    OverBudget::Node => over_budget("fetched bytes", "items are fetched from this node"),
                })?;
            let answer = self.poll(call.into(), None)?.answer().await?;
            let left = answer.left();
            Ok(FetchedItems { items: answer.take(), left })
        };
        paid_by(payer, leased).await
    }

    /// Another node follows topics of this one's shards.
    pub fn watch(&self) -> NodeWatch {
        NodeWatch::begin(self.polls.fetch_add(1, Ordering::Relaxed), self.events.clone())
    }

    /// Ends deliveries of a tenant. `notice` is told at once which of them are for other nodes.
    pub async fn ack(
        &self,
        namespace: Namespace,
        acks: Vec<Receipt>,
        notice: Option<Notice>,
    ) -> Result<Vec<SettlementResult>, Refusal> {
        self.ask(|reply| Event::Ack { namespace, acks, notice, reply }).await
    }

    /// Gives items of a tenant back. `notice` is told at once which of them are for other nodes.
    pub async fn nack(
        &self,
        namespace: Namespace,
        nacks: Vec<NackOf>,
        notice: Option<Notice>,
    ) -> Result<Vec<SettlementResult>, Refusal> {
        self.ask(|reply| Event::Nack { namespace, nacks, notice, reply }).await
    }

    /// Moves the ends of leases of a tenant. `notice` is told at once which of them are for other nodes.
    pub async fn extend_lease(
        &self,
        namespace: Namespace,
        extensions: Vec<ExtendOf>,
        notice: Option<Notice>,
    ) -> Result<Vec<ExtensionResult>, Refusal> {
        self.ask(|reply| Event::ExtendLease { namespace, extensions, notice, reply }).await
    }

    /// Lists topics that have something to deliver.
    pub async fn active_topics(&self, call: ActiveTopicsCall) -> Result<ActiveTopics, Refusal> {
        self.ask(|reply| Event::ActiveTopics { call, reply }).await
    }

    /// Changes items of a tenant. Of those whose shard this node does not own, nothing happens.
    pub async fn change_items(&self, call: ChangeCall) -> Result<Vec<ChangeResult>, Refusal> {
        self.ask(|reply| Event::ChangeItems { call, reply }).await
    }

    /// Asks the shards of this node, or one of them, for something about an operation. Returns what each of
    /// them answered; shards that this node does not own are not among them.
    pub async fn order(
        &self,
        order: OperationOrder,
        only: Option<ShardId>,
    ) -> Result<Vec<OrderResult>, Refusal> {
        let caller = order.namespace();
        self.ask(|reply| Event::Order { caller, order, only, reply }).await
    }

    /// Looks at operations of a tenant in this node's shards. Without a tenant: at those whose home they are.
    pub async fn operations(
        &self,
        namespace: Option<Namespace>,
        id: Option<OperationId>,
    ) -> Result<OperationsSnapshot, Refusal> {
        let caller = namespace.clone().unwrap_or_else(|| ALL_NAMESPACES.into());
        self.ask(|reply| Event::LookOperations { caller, namespace, id, reply }).await
    }

    /// Policies or settings have changed in the catalog. One caller alone tells of them, in the order of
    /// their versions.
    pub fn set_policies(&self, changes: PolicyChanges) {
        let _ = self.events.send(Event::Policies(changes));
    }

    /// The policies and the settings of topics and namespaces, in the order of the names. An empty topic
    /// stands for the namespace itself.
    pub async fn policies(
        &self,
        caller: Namespace,
        names: Vec<TopicName>,
    ) -> Result<Vec<DesiredSettings>, Refusal> {
        self.ask(|reply| Event::LookPolicies { caller, names, reply }).await
    }

    /// Namespaces from one on, in order, of which something is wanted or for which something is set: of
    /// themselves, or of one of their topics.
    pub async fn policy_namespaces(
        &self,
        caller: Namespace,
        from: Namespace,
        limit: usize,
    ) -> Result<Vec<Namespace>, Refusal> {
        self.ask(|reply| Event::LookNamespaces { caller, from, limit, reply }).await
    }

    /// Sets the node's duties for these shards from now on. The others keep their duties.
    pub fn set_duties(&self, duties: BTreeMap<ShardId, Duty>) {
        let _ = self.events.send(Event::Duties(duties));
    }

    /// The shards that the engine has to do with from now on: all of them. One that is new is looked at, and
    /// taken over as its duty says. One that is missing is given up at once, whatever waits in it.
    pub fn set_shards(&self, shards: Vec<ListedShard>) {
        let _ = self.events.send(Event::Shards(shards));
    }

    /// Whether this node owns a shard, for a candidate that saw no sign of life of its claim. "Resigned" is
    /// final: from then on this engine answers nobody for the shard in that epoch. The answer comes
    /// from the event loop; where that stands still, none comes.
    pub async fn owns(&self, question: OwnerQuestion) -> OwnerAnswer {
        let (reply, answer) = oneshot::channel();
        // An engine that has ended owns nothing.
        let _ = self.events.send(Event::Owns { question, reply });
        answer.await.unwrap_or(OwnerAnswer::Resigned)
    }

    /// The keys that a shard remembers, for the owner of their present homes. `None`: this node can't say,
    /// for now.
    pub async fn find_keys(&self, question: KeyQuestion) -> Option<Vec<RememberedKey>> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Event::FindKeys { question, reply }).ok()?;
        answer.await.ok()
    }

    /// The load of the shards that this node owns. `None` once the engine has stopped.
    pub async fn own_loads(&self) -> Option<Vec<ShardLoad>> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Event::OwnLoads(reply)).ok()?;
        answer.await.ok()
    }

    /// Another node tells something.
    pub fn take_in(&self, news: PeerNews) {
        let _ = self.events.send(Event::PeerNews(news));
    }

    /// The shards as the node sees them. `None` once the engine has stopped.
    pub async fn sights(&self) -> Option<Vec<ShardSight>> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Event::Sights(reply)).ok()?;
        answer.await.ok()
    }

    /// The engine's status for operators. `None` once the engine has stopped.
    pub async fn status(&self) -> Option<Status> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Event::Status(reply)).ok()?;
        answer.await.ok()
    }

    /// Namespaces that have metrics of their own.
    pub fn reported_namespaces(&self) -> &ReportedNamespaces {
        &self.reported
    }

    /// Bytes of dequeues that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.used()
    }

    /// How many shards are served, from now on. It ends with the engine.
    pub fn served(&self) -> watch::Receiver<ShardCounts> {
        self.served.clone()
    }

    /// Waits until a task of the engine panics, and returns what it said: this engine answers nobody any
    /// more, or hangs. Never returns if none does.
    pub async fn failed(&self) -> String {
        match self.failed.clone().wait_for(Option::is_some).await {
            Ok(failed) => failed.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Whether a task of the engine has panicked, and what it said.
    pub fn failure(&self) -> Option<String> {
        self.failed.borrow().clone()
    }

    /// Waits until every shard that can be reached is owned, and at least one is. Never returns if the engine
    /// stops before that.
    pub async fn ready(&self) {
        let mut served = self.served();
        let all = |served: &ShardCounts| served.owned > 0 && served.starting + served.waiting == 0;
        if served.wait_for(all).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Takes no more work, answers long polls empty, commits what was accepted, answers it, gives the shards
    /// up, and stops. Returns when that is done.
    pub async fn stop(&self) {
        let (reply, done) = oneshot::channel();
        if self.events.send(Event::Stop(reply)).is_ok() {
            let _ = done.await;
        }
    }

    /// Has the event loop answer.
    pub(crate) async fn ask<T>(&self, event: impl FnOnce(Reply<T>) -> Event) -> Result<T, Refusal> {
        let (reply, mut answer) = Reply::channel();
        if self.events.send(event(reply)).is_err() {
            return Err(draining());
        }
        received(&mut answer).await
    }
}
