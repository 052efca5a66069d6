//! Calls between processes: they take time, and get lost on the way there or back.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use forebay_engine::{
    ActiveTopics, ActiveTopicsCall, Engine, EnqueueCall, EnqueueOutcome, ExtendOf, FetchCall, FetchError,
    FetchedItems, NackOf, NodeWatch, Settlement, Subscription,
};
use forebay_front::{Answers, LinkError, Links, PeerReport, Reports, WatchError};
use forebay_types::{Namespace, Receipt, Refusal, Timestamp};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::time::{Instant, sleep_until};

use super::{cluster::Network, process::Node};
use crate::fake::{Dice, Life};

/// How often calls were passed on, and what became of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForwardCounts {
    /// They were answered.
    pub answered: u64,
    /// They were done, and the answer was lost.
    pub lost: u64,
    /// The process was not reached.
    pub unreached: u64,
    /// Of all, those that were to lease items, by the address of the process that asked.
    pub fetches: BTreeMap<String, u64>,
}

/// The way from one process to the others.
pub struct SimLinks {
    /// The process's address.
    pub own: String,
    /// Every process.
    pub nodes: Arc<Mutex<Vec<Node>>>,
    /// Chance of events on the way.
    pub dice: Mutex<Dice>,
    /// The bug [`super::CallerBug::LostCountsAsUnsent`].
    pub forgets: bool,
    /// Fates of all calls of the run.
    pub forwarded: Arc<Mutex<ForwardCounts>>,
    /// Whether a process is of the release before.
    pub is_older: fn(usize) -> bool,
    /// The process's number, and the network, if ways are cut there.
    pub network: Option<(usize, Arc<Network>)>,
}

/// Fate of a call on its way.
enum Way {
    /// It arrives, and so does the answer.
    Good,
    /// It does not arrive, and nobody knows.
    LostThere,
    /// The answer does not arrive.
    LostBack,
    /// No connection can be made.
    Closed,
}

/// A connection on which nothing arrives any more breaks after so long.
const BREAKS_AFTER: Duration = Duration::from_secs(3);
/// How often a process tells of its shards.
const REPORTS_EVERY: Duration = Duration::from_millis(250);
/// No connection is made after so long.
const CONNECTS_WITHIN: Duration = Duration::from_millis(500);

impl SimLinks {
    /// Returns the fate on the way to a process, where the network decides it.
    fn cut(&self, to: usize) -> Option<Way> {
        let (from, network) = self.network.as_ref()?;
        let (there, back) = (network.is_open(*from, to), network.is_open(to, *from));
        if there && back {
            return None;
        }
        // One connection may be open from before.
        Some(match network.chance(600) {
            true => Way::Closed,
            false if there => Way::LostBack,
            false => Way::LostThere,
        })
    }

    /// Leases items of the process at this address.
    pub async fn fetch(&self, owner: &str, call: FetchCall) -> Result<FetchedItems, FetchError> {
        self.count(|all| *all.fetches.entry(self.own.clone()).or_default() += 1);
        if self.network.as_ref().is_some_and(|(_, network)| network.loses_fetches()) {
            return Err(FetchError::Failed);
        }
        let lease =
            |engine: Engine| async move { engine.lease_items(call).await.map(|items| vec![Ok(items)]) };
        match self.pass(owner, 1, lease).await.map(|mut answers| answers.pop()) {
            Ok(Some(Ok(fetched))) => Ok(fetched),
            Ok(Some(Err(refusal))) => Err(FetchError::Refused(refusal)),
            Ok(None) | Err(_) => Err(FetchError::Failed),
        }
    }

    /// The process that listens at an address.
    fn living(&self, address: &str) -> Option<Node> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.iter().find(|node| node.address == address && node.process.life() != Life::Dead).cloned()
    }

    /// Passes a call of `count` members on to the process at this address.
    async fn pass<T, F>(&self, owner: &str, count: usize, call: impl FnOnce(Engine) -> F) -> Answers<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Vec<Result<T, Refusal>>, Refusal>> + Send + 'static,
    {
        let (there, mut back, mut way) = {
            let dice = &mut *self.dice.lock().unwrap_or_else(PoisonError::into_inner);
            let is_calm = self.network.as_ref().is_some_and(|(_, network)| network.is_calm());
            let way = match dice.below(100) {
                _ if is_calm => Way::Good,
                0..3 => Way::LostThere,
                3..8 => Way::LostBack,
                _ => Way::Good,
            };
            (dice.millis((0, 8)), dice.millis((0, 8)), way)
        };
        let node = self.living(owner);
        tokio::time::sleep(there).await;
        let Some(node) = node.filter(|node| node.process.life() != Life::Dead) else {
            self.count(|all| all.unreached += 1);
            return Err(LinkError::Unreached("the process is dead".to_owned()));
        };
        if let Some(cut) = self.cut(node.process.number) {
            (way, back) = (cut, BREAKS_AFTER);
        }
        if matches!(way, Way::Closed) {
            tokio::time::sleep(CONNECTS_WITHIN).await;
            self.count(|all| all.unreached += 1);
            return Err(LinkError::Unreached("no connection".to_owned()));
        }
        let broke = "the connection broke".to_owned();
        let lost = || Err(if self.forgets { LinkError::Unreached(broke) } else { LinkError::Lost(broke) });
        if matches!(way, Way::LostThere) {
            return lost();
        }
        let (served, engine) = (node.clone(), call(node.engine.clone()));
        // The owner goes on with a call whose caller is gone.
        let answer = tokio::spawn(async move {
            tokio::select! {
                biased;
                () = served.process.died() => None,
                answer = served.tasks.serve(engine) => Some(answer),
            }
        });
        if matches!(way, Way::LostBack) {
            tokio::time::sleep(back).await;
            self.count(|all| all.lost += 1);
            return lost();
        }
        let Ok(Some(answer)) = answer.await else { return lost() };
        tokio::time::sleep(back).await;
        self.count(|all| all.answered += 1);
        // The refusal of a whole call is that of each member.
        Ok(answer.unwrap_or_else(|refusal| (0..count).map(|_| Err(refusal.clone())).collect()))
    }

    fn count(&self, count: impl FnOnce(&mut ForwardCounts)) {
        count(&mut self.forwarded.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A stream on which a process tells another one of its shards and topics.
struct Watching {
    /// The process that tells.
    node: Node,
    /// The topics that the other one follows.
    watch: NodeWatch,
    /// Messages of the other one.
    subscriptions: BoxStream<'static, Vec<Subscription>>,
    /// How long messages take.
    dice: Dice,
    /// When the shards are told of.
    next_report: Instant,
}

impl Watching {
    /// The next message. `None`: the process has ended.
    async fn next(&mut self) -> Option<PeerReport> {
        let link = Some(self.watch.link());
        loop {
            let span = self.dice.millis((0, 8));
            let Self { node, watch, subscriptions, next_report, .. } = self;
            tokio::select! {
                biased;
                () = node.process.died() => return None,
                () = sleep_until(*next_report) => {
                    *next_report += REPORTS_EVERY;
                    let loads = Some(node.tasks.serve(node.engine.own_loads()).await?);
                    return Some(PeerReport { link, loads, heads: Vec::new() });
                }
                changes = subscriptions.next() => {
                    tokio::time::sleep(span).await;
                    watch.subscribe(changes?);
                }
                heads = node.tasks.serve(watch.next()) => {
                    let heads = heads?;
                    tokio::time::sleep(span).await;
                    return Some(PeerReport { link, loads: None, heads });
                }
            }
        }
    }
}

#[async_trait]
impl Links for SimLinks {
    fn own(&self) -> &str {
        &self.own
    }

    async fn watch(
        &self,
        node: &str,
        subscriptions: BoxStream<'static, Vec<Subscription>>,
    ) -> Result<Reports, WatchError> {
        let Some(node) = self.living(node) else { return Err(WatchError::Unreached) };
        let (number, network) = (node.process.number, self.network.clone());
        if (self.is_older)(number) {
            return Err(WatchError::Older);
        }
        let is_open = move || {
            network
                .as_ref()
                .is_none_or(|(own, network)| network.is_open(*own, number) && network.is_open(number, *own))
        };
        if !is_open() {
            return Err(WatchError::Unreached);
        }
        let watch = node.engine.watch();
        let dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner).fork();
        let next_report = Instant::now();
        let watching = Watching { node, watch, subscriptions, dice, next_report };
        let next = move |mut watching: Watching| {
            let is_open = is_open.clone();
            async move {
                let report = watching.next().await.filter(|_| is_open())?;
                Some((report, watching))
            }
        };
        Ok(stream::unfold(watching, next).boxed())
    }

    async fn active_topics(&self, node: &str, call: ActiveTopicsCall) -> Result<ActiveTopics, LinkError> {
        let list =
            |engine: Engine| async move { engine.active_topics(call).await.map(|page| vec![Ok(page)]) };
        match self.pass(node, 1, list).await?.pop() {
            Some(Ok(page)) => Ok(page),
            Some(Err(refusal)) => Err(LinkError::Unreached(refusal.message)),
            None => Err(LinkError::Lost("it answers nothing".to_owned())),
        }
    }

    async fn enqueue(&self, owner: &str, call: EnqueueCall) -> Answers<EnqueueOutcome> {
        let count = call.items.len();
        self.pass(owner, count, |engine| async move { engine.enqueue(call).await }).await
    }

    async fn ack(&self, owner: &str, namespace: Namespace, acks: Vec<Receipt>) -> Answers<Settlement> {
        let count = acks.len();
        self.pass(owner, count, |engine| async move { engine.ack(namespace, acks, None).await }).await
    }

    async fn nack(&self, owner: &str, namespace: Namespace, nacks: Vec<NackOf>) -> Answers<Settlement> {
        let count = nacks.len();
        self.pass(owner, count, |engine| async move { engine.nack(namespace, nacks, None).await }).await
    }

    async fn extend_lease(
        &self,
        owner: &str,
        namespace: Namespace,
        extensions: Vec<ExtendOf>,
    ) -> Answers<Timestamp> {
        let count = extensions.len();
        let extend = |engine: Engine| async move { engine.extend_lease(namespace, extensions, None).await };
        self.pass(owner, count, extend).await
    }
}
