//! Changes policies in the catalog. The engine is told by who follows the catalog, and by nobody else: a
//! change is answered once this node's engine knows it, and the other nodes have been told to look.

use std::{sync::Arc, time::Duration};

use forebay_access::{Identity, Scope};
use forebay_edge::turns::Turns;
use forebay_engine::RETRY_AFTER;
use forebay_membership::{ClusterLinks, ClusterState};
use forebay_peers::PeerLinks;
use forebay_store::{Catalog, PolicyBounds, PolicyOutcome, PolicyWish, StoreError};
use forebay_types::{Clock, Policy, Reason, Refusal, TopicName};
use futures_util::future::join_all;
use tokio::sync::{Notify, watch};

/// How often a change is tried again because somebody else was faster.
const TRIES_MAX: u32 = 10;
/// How long the catalog may take to make a change.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the answer waits for this node's engine.
const TOLD_TIMEOUT: Duration = Duration::from_secs(5);
/// The message to callers for an error of the catalog.
const FAILED: &str = "it does not answer, or its schema is older than this program";
/// Pauses that ended so long ago are removed. Nodes' clocks differ.
const ENDED_FOR: Duration = Duration::from_secs(60);

/// Changes policies.
#[derive(Clone)]
pub struct PolicyBook {
    /// The catalog.
    pub catalog: Arc<dyn Catalog>,
    /// Asks who follows the catalog to look at it now.
    pub look: Arc<Notify>,
    /// Up to which version this node's engine knows the policies.
    pub told: watch::Receiver<u64>,
    /// The way to the other nodes, and which there are.
    pub others: (Arc<PeerLinks>, watch::Receiver<Arc<ClusterState>>),
    /// By which pauses end.
    pub clock: Arc<dyn Clock>,
    /// Tenants that change something at the moment.
    pub turns: Turns,
}

impl PolicyBook {
    /// Changes a policy, and returns it as it is then. What did not change is not written. Tried without
    /// effect, it tells how the policy would be.
    pub async fn change(
        &self,
        caller: &Identity,
        name: &TopicName,
        dry_run: bool,
        change: impl Fn(&mut Policy),
    ) -> Result<Policy, Refusal> {
        let _turn = self.turns.take(&name.namespace)?;
        let WriteOutcome { wanted, version, is_new } =
            in_time(self.write(root_of(caller), name, dry_run, change)).await?;
        self.tell(version, is_new).await?;
        Ok(wanted)
    }

    /// Has all nodes follow a change, and waits for this one. Where nothing is new, it waits for what was
    /// there.
    pub(super) async fn tell(&self, version: u64, is_new: bool) -> Result<(), Refusal> {
        if is_new {
            self.tell_others();
        }
        self.tell_engine(version).await
    }

    /// Writes the change.
    async fn write(
        &self,
        root: String,
        name: &TopicName,
        dry_run: bool,
        change: impl Fn(&mut Policy),
    ) -> Result<WriteOutcome<Policy>, Refusal> {
        for _ in 0..TRIES_MAX {
            let found = self.catalog.policy(name).await.map_err(|error| unread(&error))?;
            let now = self.clock.wall();
            let mut policy = found.policy.clone();
            policy.drop_ended(now);
            change(&mut policy);
            if policy == found.policy || dry_run {
                return Ok(WriteOutcome { wanted: policy, version: found.version, is_new: false });
            }
            let wish = PolicyWish {
                name: name.clone(),
                from_version: found.version,
                policy,
                ended_before: now.minus(ENDED_FOR),
                root: root.clone(),
                bounds: PolicyBounds::DEFAULT,
            };
            let written = self.catalog.put_policy(&wish).await.map_err(|error| failed(&error))?;
            match written {
                PolicyOutcome::Yes(version) => {
                    return Ok(WriteOutcome { wanted: wish.policy, version, is_new: true });
                }
                PolicyOutcome::Stale => {}
                PolicyOutcome::NamespaceFull | PolicyOutcome::RootFull | PolicyOutcome::Full => {
                    return Err(full("pauses", written));
                }
            }
        }
        Err(unavailable("the policy is changed by others at the moment"))
    }

    /// Has the other nodes look at the catalog. Who does not answer looks within a second by itself.
    fn tell_others(&self) {
        let (links, cluster) = (self.others.0.clone(), self.others.1.borrow().clone());
        tokio::spawn(async move {
            let others = cluster.nodes.iter().filter(|node| node.live && node.name != cluster.own);
            join_all(others.map(|node| links.catalog_changed(&node.peer_address))).await;
        });
    }

    /// Waits until this node's engine acts on the policies of a version.
    async fn tell_engine(&self, version: u64) -> Result<(), Refusal> {
        let mut told = self.told.clone();
        if *told.borrow_and_update() >= version {
            return Ok(());
        }
        self.look.notify_one();
        let known = told.wait_for(|known| *known >= version);
        if tokio::time::timeout(TOLD_TIMEOUT, known).await.is_err() {
            tracing::warn!("a policy is in the catalog, and this node has not read it for {TOLD_TIMEOUT:?}");
            return Err(unavailable("it has the change, and this node has not read it yet"));
        }
        Ok(())
    }
}

/// From whom a caller's rights descend, as the catalog counts. Empty: it is an operator.
pub(super) fn root_of(caller: &Identity) -> String {
    let is_operator = caller.may_everywhere(Scope::Admin);
    if is_operator { String::new() } else { caller.root_in_catalog().to_owned() }
}

/// Outcome of a policy change.
pub(super) struct WriteOutcome<T> {
    /// The value that is wanted.
    pub wanted: T,
    /// Its version.
    pub version: u64,
    /// It was something else before.
    pub is_new: bool,
}

/// The outcome of a change, if the catalog makes it in time.
pub(super) async fn in_time<T>(change: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    tokio::time::timeout(CATALOG_TIMEOUT, change).await.map_err(|_| late(CATALOG_TIMEOUT))?
}

/// There is no room for one more: of a namespace, of a root, or in all.
pub(super) fn full(what: &str, written: PolicyOutcome) -> Refusal {
    let bounds = PolicyBounds::DEFAULT;
    let message = match written {
        PolicyOutcome::NamespaceFull => {
            format!("the namespace has {what} of {} topics, which is the limit", bounds.per_namespace)
        }
        PolicyOutcome::RootFull => format!(
            "the caller, whoever gave it its rights, and those to whom they gave some have {what} of {} \
             topics and namespaces, which is the limit",
            bounds.by_root.per_root
        ),
        _ => format!(
            "the cluster has room for {what} of {} topics and namespaces, the last of which are for \
             operators and for those who have few: there is none left for the caller",
            bounds.by_root.in_all
        ),
    };
    Refusal::new(Reason::TooManyPolicies, message).retry_after(RETRY_AFTER)
}

/// The catalog failed to make a change. What it said is for operators.
pub(super) fn failed(error: &StoreError) -> Refusal {
    tracing::warn!(%error, "policies or settings can't be changed in the catalog");
    unavailable(FAILED)
}

/// The catalog did not make a change in time.
pub(super) fn late(timeout: Duration) -> Refusal {
    unavailable(&format!("no answer within {timeout:?}"))
}

/// The catalog failed to read. What it said is for operators.
pub(super) fn unread(error: &StoreError) -> Refusal {
    tracing::warn!(%error, "policies or settings can't be read from the catalog");
    unreadable(FAILED)
}

/// The catalog was not read in time.
pub(super) fn unread_late(timeout: Duration) -> Refusal {
    unreadable(&format!("no answer within {timeout:?}"))
}

fn unavailable(why: &str) -> Refusal {
    Refusal::new(Reason::CatalogUnavailable, format!("the catalog: {why}; it may or may not be done"))
        .retry_after(RETRY_AFTER)
}

fn unreadable(why: &str) -> Refusal {
    Refusal::new(Reason::CatalogUnavailable, format!("the catalog: {why}; nothing was changed"))
        .retry_after(RETRY_AFTER)
}
