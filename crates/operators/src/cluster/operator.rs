//! Changes of shards and nodes that calls ask for.

use std::{future::Future, sync::Arc, time::Duration};

use forebay_config::Config;
use forebay_engine::RETRY_AFTER;
use forebay_membership::ClusterState;
use forebay_store::CatalogError;
use forebay_types::{Reason, Refusal};
use tokio::sync::{Notify, Semaphore, watch};

use super::{OperateError, ShardsError};

/// So long a call waits until its node has seen the change in the catalog.
const SEEN_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes changes, one at a time: each opens connections of its own, to the catalog and perhaps to a shard. To
/// add a shard may take long, since its schema is made, so other changes do not wait for that.
#[derive(Clone)]
pub struct Operator {
    /// Names the catalog, and has the passwords of the servers.
    config: Arc<Config>,
    /// Notified when the catalog has changed.
    look: Arc<Notify>,
    /// The cluster as this node sees it.
    state: watch::Receiver<Arc<ClusterState>>,
    /// Permit to make a change. There is one.
    turn: Arc<Semaphore>,
    /// Permit to add a shard. There is one.
    adding: Arc<Semaphore>,
}

impl Operator {
    /// Of a node in a cluster.
    pub fn new(config: Config, look: Arc<Notify>, state: watch::Receiver<Arc<ClusterState>>) -> Self {
        let [turn, adding] = [(); 2].map(|()| Arc::new(Semaphore::new(1)));
        Self { config: Arc::new(config), look, state, turn, adding }
    }

    /// Makes a change, in a task of its own: one whose caller is gone comes to its end all the same.
    pub async fn change<T, E, F>(&self, change: impl FnOnce(Arc<Config>) -> F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        E: Into<ShardsError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.make(&self.turn, change).await
    }

    /// The same, to add a shard.
    pub async fn add<T, F>(&self, change: impl FnOnce(Arc<Config>) -> F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ShardsError>> + Send + 'static,
    {
        self.make(&self.adding, change).await
    }

    async fn make<T, E, F>(
        &self,
        turn: &Arc<Semaphore>,
        change: impl FnOnce(Arc<Config>) -> F,
    ) -> Result<T, Refusal>
    where
        T: Send + 'static,
        E: Into<ShardsError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let turn = turn.clone().try_acquire_owned().map_err(|_| {
            let message = "the shards or the nodes are being changed: one change at a time";
            Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER)
        })?;
        let (look, change) = (self.look.clone(), change(self.config.clone()));
        let made = tokio::spawn(async move {
            let made = change.await;
            drop(turn);
            look.notify_one();
            made
        });
        let made = made.await.map_err(|_| Refusal::new(Reason::OutcomeUnknown, "the change was cut off"))?;
        made.map_err(|error| refusal(&error.into()))
    }

    /// Waits until this node has seen a change, but not for long: the change is made in any case.
    pub async fn seen(&self, mut is_seen: impl FnMut(&ClusterState) -> bool) {
        let mut state = self.state.clone();
        let _ = tokio::time::timeout(SEEN_TIMEOUT, state.wait_for(|state| is_seen(state))).await;
    }
}

/// Why a change was not made, for a caller.
fn refusal(error: &ShardsError) -> Refusal {
    let message = error.to_string();
    let reason = match error {
        ShardsError::Url(_)
        | ShardsError::OtherCluster(_)
        | ShardsError::NewServer(_)
        | ShardsError::Catalog(CatalogError::Password | CatalogError::Url(_)) => {
            return Refusal::field("url", message);
        }
        ShardsError::Operate(OperateError::Name(_)) => return Refusal::field("node", message),
        // Tokens are changed elsewhere.
        ShardsError::Operate(
            OperateError::Catalog(_)
            | OperateError::Busy
            | OperateError::Access(_)
            | OperateError::TooManyTokens,
        )
        | ShardsError::NoCatalogSchema
        | ShardsError::Catalog(CatalogError::Store(_) | CatalogError::Stale) => Reason::CatalogUnavailable,
        ShardsError::Operate(OperateError::NoNode(..)) => Reason::NodeNotFound,
        ShardsError::Operate(OperateError::NoShard(_))
        | ShardsError::NoShard(_)
        | ShardsError::Catalog(CatalogError::NoShard(_)) => Reason::ShardNotFound,
        ShardsError::Operate(OperateError::NotPinned(_))
        | ShardsError::Last(_)
        | ShardsError::NotDrained(_)
        | ShardsError::Unseen(..)
        | ShardsError::HeldUp(..)
        | ShardsError::Catalog(CatalogError::NumberTaken(_) | CatalogError::UrlTaken(_)) => {
            Reason::ShardInUse
        }
        ShardsError::New(_) | ShardsError::Migrate(_) => Reason::ShardUnavailable,
    };
    let refusal = Refusal::new(reason, message);
    match reason {
        Reason::CatalogUnavailable | Reason::ShardUnavailable => refusal.retry_after(RETRY_AFTER),
        _ => refusal,
    }
}
