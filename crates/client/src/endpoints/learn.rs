//! Learns the nodes of a cluster: asks one of them now and then, and uses those that can be reached.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use forebay_proto::v1;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tonic::Code;

use super::{dialer::Dialer, endpoint::Endpoint, route::Route, set::Endpoints};
use crate::{address::Address, error::Error, rng::SharedRng};

/// How often nodes are asked for, more or less.
const LEARN_EVERY: Duration = Duration::from_secs(10);
/// How soon after a round the next one may follow, if it failed or there is a reason; more or less.
const LEARN_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often, if the server has no such call, or does not allow it.
const REFUSED_EVERY: Duration = Duration::from_secs(60);
/// How many endpoints are asked in one round, if some fail.
const ASKED_MAX: usize = 3;

/// Learns the nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Learner {
    /// Is told which servers to use.
    endpoints: Arc<Endpoints>,
    /// Connects to learnt nodes.
    dialer: Dialer,
    /// Makes clients ask at different times.
    rng: Arc<SharedRng>,
    /// How long an answer may take.
    timeout: Duration,
    /// Learnt nodes are called with TLS.
    tls: bool,
    /// When the next round is due.
    next: Mutex<Next>,
    /// The nodes that were reached.
    learnt: Mutex<Vec<ReachedNode>>,
    /// A round has ended.
    asked: AtomicBool,
}

/// When the next round is due.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// After the first call that a server answers.
    FirstAnswer,
    /// Then.
    At {
        /// Without a reason.
        usual: Instant,
        /// At the soonest.
        soonest: Instant,
    },
    /// After this one.
    UnderWay,
}

/// A node that was reached.
#[derive(Debug, Clone)]
struct ReachedNode {
    /// The node's name.
    name: String,
    /// Its connection.
    endpoint: Arc<Endpoint>,
}

impl Learner {
    /// Has learnt nothing yet. `timeout`: how long an answer may take. `tls`: nodes are called with TLS, and
    /// those that can't be are not.
    pub(crate) fn new(
        endpoints: Arc<Endpoints>,
        dialer: Dialer,
        rng: Arc<SharedRng>,
        timeout: Duration,
        tls: bool,
    ) -> Arc<Self> {
        let (next, learnt) = (Mutex::new(Next::FirstAnswer), Mutex::default());
        Arc::new(Self { endpoints, dialer, rng, timeout, tls, next, learnt, asked: AtomicBool::new(false) })
    }

    /// A call succeeded. Learns in the background, if it is time.
    pub(crate) fn on_success(self: &Arc<Self>) {
        self.start_if_due(|usual, _| usual);
    }

    /// A server that worked fails: what is known of the nodes may be outdated, so learn after the next
    /// answer.
    pub(crate) fn on_failure(&self) {
        let mut next = self.next();
        if let Next::At { usual, .. } = &mut *next {
            *usual = Instant::now();
        }
    }

    /// A server cannot serve a shard that another one may serve: that one may not be known yet. If all calls
    /// end like this, there is no success to wait for.
    pub(crate) fn on_refusal(self: &Arc<Self>) {
        self.start_if_due(Instant::min);
    }

    /// Begins a round in the background, if its time has come: one that `due` makes of when it would usually
    /// be and when it may be at the soonest.
    fn start_if_due(self: &Arc<Self>, due: impl Fn(Instant, Instant) -> Instant) {
        let is_due = match *self.next() {
            Next::FirstAnswer => true,
            Next::At { usual, soonest } => due(usual, soonest) <= Instant::now(),
            Next::UnderWay => false,
        };
        if is_due {
            self.start();
        }
    }

    /// The connection to the node of this name, if it was reached.
    pub(crate) fn endpoint_of(&self, node: &str) -> Option<Arc<Endpoint>> {
        let learnt = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        learnt.iter().find(|one| one.name == node).map(|one| one.endpoint.clone())
    }

    /// Whether it has asked for the nodes, with success or without.
    pub(crate) fn has_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// Learns in time although no calls are made. Runs until it is dropped.
    pub(crate) async fn keep_learning(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LEARN_EVERY / 10).await;
            if matches!(*self.next(), Next::At { .. }) {
                self.on_success();
            }
        }
    }

    fn start(self: &Arc<Self>) {
        *self.next() = Next::UnderWay;
        let learner = self.clone();
        tokio::spawn(async move {
            let (usual, soonest) = match learner.round().await {
                Ok(()) => (LEARN_EVERY, LEARN_AGAIN_AFTER),
                Err(error) => {
                    tracing::debug!(%error, "cannot learn the nodes; staying with the known endpoints");
                    match error.code() {
                        Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated => {
                            (REFUSED_EVERY, REFUSED_EVERY)
                        }
                        _ => (LEARN_AGAIN_AFTER, LEARN_AGAIN_AFTER),
                    }
                }
            };
            let now = Instant::now();
            let after = |span: Duration| now + span.mul_f64(0.8) + learner.rng.up_to(span.mul_f64(0.4));
            learner.asked.store(true, Relaxed);
            *learner.next() = Next::At { usual: after(usual), soonest: after(soonest) };
        });
    }

    async fn round(&self) -> Result<(), Error> {
        let nodes = self.ask().await?;
        let address = |node: &v1::Node| Address::learnt(&node.clients_address, self.tls).ok();
        let (live, leaving): (Vec<_>, Vec<_>) = nodes.into_iter().partition(may_be_called);
        let (mut reached, mut all) = (Vec::new(), !live.is_empty());
        let each_delivers_all = live.iter().all(|node| node.delivers_all);
        let mut checks = JoinSet::new();
        for node in live {
            match address(&node).map(|address| (self.known(&node.name, &address), address)) {
                Some((Some(known), _)) => reached.push(known),
                Some((None, address)) => match self.check(node.name, &address) {
                    Ok(check) => _ = checks.spawn(check),
                    Err(_) => all = false,
                },
                None => all = false,
            }
        }
        while let Some(checked) = checks.join_next().await {
            match checked {
                Ok(Some(node)) => reached.push(node),
                _ => all = false,
            }
        }
        let leaving: HashSet<_> =
            leaving.iter().filter_map(address).map(|address| address.host_port().to_owned()).collect();
        self.apply(reached, all, each_delivers_all, &leaving);
        Ok(())
    }

    /// Uses what was reached, and those that were given unless every live node was reached: they may lead to
    /// the others, through a proxy for example.
    fn apply(
        &self,
        mut reached: Vec<ReachedNode>,
        all: bool,
        each_delivers_all: bool,
        leaving: &HashSet<String>,
    ) {
        reached.sort_by(|a, b| a.name.cmp(&b.name));
        let mut in_use: Vec<Arc<Endpoint>> = Vec::new();
        let given = self.endpoints.all_given();
        let needed = given.iter().filter(|one| !all && !leaving.contains(one.host_port()));
        for one in reached.iter().map(|node| &node.endpoint).chain(needed) {
            // Nodes behind one address have one endpoint.
            if !in_use.iter().any(|other| other.host_port() == one.host_port()) {
                in_use.push(one.clone());
            }
        }
        if in_use.is_empty() {
            in_use = given.to_vec();
        }
        let each_delivers_all = each_delivers_all && !reached.is_empty();
        *self.learnt.lock().unwrap_or_else(PoisonError::into_inner) = reached;
        self.endpoints.use_these(in_use, each_delivers_all);
    }

    /// The nodes, as one of the endpoints knows them.
    async fn ask(&self) -> Result<Vec<v1::Node>, Error> {
        let mut tried = Vec::new();
        let mut failed = Error::local(Code::Internal, "there is no endpoint");
        for _ in 0..ASKED_MAX {
            let Some(endpoint) = self.endpoints.choose(&Route::InTurn, None, &mut tried) else { break };
            let began = Instant::now();
            match nodes(&endpoint, self.timeout).await {
                Ok(nodes) => {
                    endpoint.works(began);
                    return Ok(nodes);
                }
                Err(error) => {
                    if error.is_servers_fault() {
                        endpoint.failed(began, &self.rng);
                    }
                    failed = error;
                }
            }
            if !failed.another_may_serve() || !self.endpoints.has_fresh(&tried) {
                break;
            }
        }
        Err(failed)
    }

    /// The endpoint of a node that was reached before, or that the user named.
    fn known(&self, name: &str, address: &Address) -> Option<ReachedNode> {
        let learnt = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |endpoint: &Endpoint| endpoint.host_port() == address.host_port();
        let before = learnt.iter().find(|node| node.name == name && same(&node.endpoint)).cloned();
        before.or_else(|| {
            let given = self.endpoints.all_given().iter().find(|endpoint| same(endpoint))?;
            Some(ReachedNode { name: name.to_owned(), endpoint: given.clone() })
        })
    }

    /// Whether that node, and no other, is at the address: the same address may mean another machine here.
    fn check(
        &self,
        name: String,
        address: &Address,
    ) -> Result<impl Future<Output = Option<ReachedNode>> + Send + 'static, Error> {
        let channel = self.dialer.dial(address)?;
        let endpoint = self.endpoints.endpoint(address, channel);
        let limit = self.timeout;
        Ok(async move {
            match nodes(&endpoint, limit).await {
                Ok(nodes) if nodes.iter().any(|node| node.self_ && node.name == name) => {
                    Some(ReachedNode { name, endpoint })
                }
                Ok(_) => {
                    let at = endpoint.address();
                    tracing::debug!(node = name, "node {name} is not at {at} for this client");
                    None
                }
                Err(error) => {
                    tracing::debug!(node = name, %error, "cannot reach node {name} directly");
                    None
                }
            }
        })
    }

    fn next(&self) -> MutexGuard<'_, Next> {
        // A panic while the lock is held leaves a valid value.
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether clients should call a node. One that still owns shards is the only one that serves them, whether
/// it drains or is cut off from the catalog alone.
fn may_be_called(node: &v1::Node) -> bool {
    node.shards > 0 || node.state() == v1::NodeState::Live && !node.draining
}

/// Every node that the node at `endpoint` knows.
async fn nodes(endpoint: &Endpoint, limit: Duration) -> Result<Vec<v1::Node>, Error> {
    let pages = async {
        let mut nodes = Vec::new();
        let mut request = v1::ListNodesRequest { page_size: 1_000, ..Default::default() };
        loop {
            let page = endpoint.ask(request.clone(), limit).await?;
            nodes.extend(page.nodes);
            if page.next_page_token.is_empty() {
                return Ok(nodes);
            }
            request.page_token = page.next_page_token;
        }
    };
    timeout(limit, pages).await.unwrap_or_else(|_| Err(Error::timed_out(endpoint.address(), limit)))
}
