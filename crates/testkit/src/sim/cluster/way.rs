//! Questions and notices of one node to the others.

use std::{
    future::{Future, pending},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use forebay_engine::{
    FetchCall, FetchError, FetchedItems, KeyQuestion, OwnerAnswer, OwnerQuestion, Peers, RememberedKey,
};
use forebay_front::Links as _;
use forebay_membership::{ClusterLinks, is_ready_for};
use forebay_types::{Namespace, Receipt, ShardId};

use super::network::Network;
use crate::{
    fake::Life,
    sim::{links::SimLinks, process::Node},
};

/// How long a question may take.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a question for keys may take.
const FIND_KEYS_TIMEOUT: Duration = Duration::from_secs(1);

/// The way of one process to the others.
pub struct ClusterWay {
    /// The process.
    pub process: usize,
    /// Every process.
    pub nodes: Arc<Mutex<Vec<Node>>>,
    /// The network on the way.
    pub network: Arc<Network>,
    /// The way on which calls are passed on.
    pub links: Arc<SimLinks>,
}

impl ClusterWay {
    /// Asks a process. `None`: no answer came in time. What it was asked it does, whatever becomes of the
    /// asker.
    async fn question<T, F>(&self, address: &str, timeout: Duration, ask: impl Fn(Node) -> F) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let node = {
            let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
            nodes.iter().rfind(|node| node.address == address).cloned()
        };
        let way = self.network.way();
        let asked = async {
            tokio::time::sleep(way.there).await;
            // Nobody listens where a process is dead.
            let node = node.filter(|node| node.process.life() != Life::Dead)?;
            let number = node.process.number;
            if way.lost_there || !self.network.is_open(self.process, number) {
                pending::<()>().await;
            }
            if let Some(after) = way.again {
                let (served, again) = (node.clone(), ask(node.clone()));
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    tokio::select! {
                        biased;
                        () = served.process.died() => {}
                        _ = served.tasks.serve(again) => {}
                    }
                });
            }
            let (served, asked) = (node.clone(), ask(node));
            let answer = tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = served.process.died() => None,
                    answer = served.tasks.serve(asked) => Some(answer),
                }
            });
            let answer = answer.await.ok().flatten()?;
            tokio::time::sleep(way.back).await;
            if way.lost_back || !self.network.is_open(number, self.process) {
                pending::<()>().await;
            }
            Some(answer)
        };
        tokio::time::timeout(timeout, asked).await.ok().flatten()
    }
}

#[async_trait]
impl ClusterLinks for ClusterWay {
    async fn is_ready_for(&self, address: &str, shard: ShardId) -> bool {
        let ask = |node: Node| async move { is_ready_for(&node.engine, shard).await };
        self.question(address, ASK_TIMEOUT, ask).await.unwrap_or(false)
    }

    async fn answers(&self, address: &str) -> bool {
        self.question(address, ASK_TIMEOUT, |_| async {}).await.is_some()
    }

    async fn catalog_changed(&self, address: &str) -> bool {
        let notify = |node: Node| async move {
            if let Some(member) = &node.member {
                member.changed.notify_one();
            }
        };
        self.question(address, ASK_TIMEOUT, notify).await.is_some()
    }

    fn retain(&self, _addresses: &[&str]) {}
}

#[async_trait]
impl Peers for ClusterWay {
    async fn lease_items(&self, address: &str, call: FetchCall) -> Result<FetchedItems, FetchError> {
        self.links.fetch(address, call).await
    }

    async fn return_items(&self, address: &str, namespace: Namespace, receipts: Vec<Receipt>) {
        self.links.return_items(address, namespace, receipts).await;
    }

    async fn consume_items(&self, address: &str, namespace: Namespace, receipts: Vec<Receipt>) -> Vec<bool> {
        self.links.consume_items(address, namespace, receipts).await
    }

    async fn ask(&self, address: &str, question: OwnerQuestion) -> OwnerAnswer {
        let ask = |node: Node| async move { node.engine.owns(question).await };
        self.question(address, ASK_TIMEOUT, ask).await.unwrap_or(OwnerAnswer::Silent)
    }

    async fn find_keys(&self, address: &str, question: KeyQuestion) -> Option<Vec<RememberedKey>> {
        let ask = |node: Node| {
            let question = question.clone();
            async move { node.engine.find_keys(question).await }
        };
        self.question(address, FIND_KEYS_TIMEOUT, ask).await.flatten()
    }
}
