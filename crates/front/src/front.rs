//! The handle by which calls reach the node that serves them.

use std::sync::{Arc, OnceLock};

use forebay_engine::{
    ActiveTopics, ActiveTopicsCall, Engine, EnqueueCall, ExtendOf, ExtensionResult, NackOf, SettlementResult,
};
use forebay_types::{Namespace, Receipt, Refusal};
use tokio::sync::oneshot;

use crate::{
    active_topics::over_nodes,
    enqueue::{Enqueue, EnqueueAnswer},
    kept_pages::KeptPages,
    links::Links,
    route::route,
    settle::{Ack, ExtendLease, Nack},
};

/// Serves calls here or at other nodes. Cheap to clone.
#[derive(Clone)]
pub struct Front {
    /// Serves what belongs to shards of this node, and says what does not.
    engine: Engine,
    /// The way to other nodes. `None`: this node knows none, and serves what it can.
    links: Option<Arc<dyn Links>>,
    /// Pages of active topics of the last moments.
    pages: Arc<KeptPages>,
}

impl Front {
    /// A front of this engine.
    pub fn new(engine: Engine, links: Option<Arc<dyn Links>>) -> Self {
        Self { engine, links, pages: Arc::default() }
    }

    /// Stores items, wherever they belong. The outer error refuses the whole call: nothing of it happened.
    pub async fn enqueue(&self, call: EnqueueCall) -> Result<EnqueueAnswer, Refusal> {
        let Some(links) = &self.links else {
            let (notice, mut told) = oneshot::channel();
            let results = self.engine.enqueue_noting(call, Some(notice)).await?;
            let next_shard = told.try_recv().ok().and_then(|places| places.next_shard);
            return Ok(EnqueueAnswer { results, next_shard });
        };
        let EnqueueCall { namespace, items, request_id, shard, .. } = call;
        let (engine, next_shard) = (&self.engine, OnceLock::new());
        let call = Enqueue { engine, links: &**links, namespace, request_id, shard, next_shard };
        let results = route(&call, links.own(), items).await?;
        Ok(EnqueueAnswer { results, next_shard: call.next_shard.into_inner() })
    }

    /// Lists topics of all nodes that have something to deliver. Of several nodes, as they had it up to
    /// 200 ms ago.
    pub async fn active_topics(&self, call: ActiveTopicsCall) -> Result<ActiveTopics, Refusal> {
        if let Some(page) = self.pages.kept(&call) {
            return page.await;
        }
        let own = self.engine.active_topics(call.clone()).await?;
        let Some(links) = self.links.clone().filter(|_| !own.nodes.is_empty()) else { return Ok(own) };
        let (engine, asked) = (self.engine.clone(), call.clone());
        self.pages.keep(call, async move { over_nodes(&engine, &*links, asked, own).await }).await
    }

    /// Ends deliveries of a tenant.
    pub async fn ack(
        &self,
        namespace: Namespace,
        acks: Vec<Receipt>,
    ) -> Result<Vec<SettlementResult>, Refusal> {
        let Some(links) = &self.links else { return self.engine.ack(namespace, acks, None).await };
        route(&Ack { engine: &self.engine, links: &**links, namespace }, links.own(), acks).await
    }

    /// Gives items of a tenant back.
    pub async fn nack(
        &self,
        namespace: Namespace,
        nacks: Vec<NackOf>,
    ) -> Result<Vec<SettlementResult>, Refusal> {
        let Some(links) = &self.links else { return self.engine.nack(namespace, nacks, None).await };
        route(&Nack { engine: &self.engine, links: &**links, namespace }, links.own(), nacks).await
    }

    /// Moves the ends of leases of a tenant.
    pub async fn extend_lease(
        &self,
        namespace: Namespace,
        extensions: Vec<ExtendOf>,
    ) -> Result<Vec<ExtensionResult>, Refusal> {
        let Some(links) = &self.links else {
            return self.engine.extend_lease(namespace, extensions, None).await;
        };
        route(&ExtendLease { engine: &self.engine, links: &**links, namespace }, links.own(), extensions)
            .await
    }
}
