//! Operations of all nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use forebay_engine::{ItemCount, OperationsSnapshot, OrderResult, RETRY_AFTER};
use forebay_peers::PeerLinks;
use forebay_store::{OperationId, OperationOrder, OperationPart, OperationSpec};
use forebay_types::{Namespace, Reason, Refusal, ShardId};

use super::{Gather, operation_view::OperationView};

/// How long shards may take to commit an order. Those that take longer are told again.
const ORDER_TIMEOUT: Duration = Duration::from_secs(3);

impl Gather {
    /// Asks the owners of all shards, or that of one, for something about an operation. Those that do not
    /// answer in time are missing; they may do it nevertheless.
    pub async fn order(&self, order: &OperationOrder, only: Option<ShardId>) -> Vec<OrderResult> {
        let own = async { self.engine.order(order.clone(), only).await.unwrap_or_default() };
        let own = async { tokio::time::timeout(ORDER_TIMEOUT, own).await.unwrap_or_default() };
        let asked = self.ask_others(|links, address| async move {
            let answer = links.order_operation(&address, order, only);
            tokio::time::timeout(ORDER_TIMEOUT, answer).await.ok().flatten()
        });
        let (mut answers, others) = tokio::join!(own, asked);
        answers.extend(others.into_iter().flatten());
        answers
    }

    /// Operations of a tenant, or one of them, and the shards that were looked at.
    pub async fn operations(
        &self,
        namespace: &Namespace,
        id: Option<OperationId>,
    ) -> Result<(Vec<OperationView>, BTreeSet<u32>), Refusal> {
        let ask = |links: Arc<PeerLinks>, address: String| async move {
            links.list_operations(&address, namespace, id).await
        };
        let own = self.engine.operations(Some(namespace.clone()), id);
        let (own, others) = tokio::join!(own, self.ask_others(ask));
        let mut shards = BTreeSet::new();
        let mut parts = Vec::new();
        for seen in std::iter::once(own?).chain(others) {
            let OperationsSnapshot { parts: some, shards: looked_at } = seen;
            shards.extend(looked_at.iter().map(|id| id.0));
            parts.extend(some);
        }
        Ok((views(parts), shards))
    }

    /// Counts what an operation would change, by shard.
    pub async fn count_items(&self, spec: &OperationSpec, time: Duration) -> Result<Vec<ItemCount>, Refusal> {
        let ask = |links: Arc<PeerLinks>, address: String| async move {
            links.count_items(&address, spec, time).await
        };
        let (own, others) = tokio::join!(self.engine.count_items(spec, time), self.ask_others(ask));
        let all = own?.into_iter().chain(others.into_iter().flatten());
        // A shard that moves may be counted twice.
        let by_shard: BTreeMap<ShardId, ItemCount> = all.map(|count| (count.shard, count)).collect();
        Ok(by_shard.into_values().collect())
    }

    /// All shards, and first those that this node owns.
    pub(crate) async fn all_shards(&self) -> Result<(Vec<ShardId>, Vec<ShardId>), Refusal> {
        // There is no such operation: only the shards are asked for.
        let own = self.engine.operations(None, Some(OperationId::default())).await?.shards;
        let all: Vec<ShardId> = self.incomplete(&BTreeSet::new()).into_iter().map(ShardId).collect();
        if all.is_empty() {
            // It would take every part for ended.
            let message = "this node does not know yet which shards there are";
            return Err(Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER));
        }
        Ok((own, all))
    }
}

/// Puts the parts together that belong to one operation. One whose home shard could not be asked is left out
/// of a list.
pub(super) fn views(parts: Vec<OperationPart>) -> Vec<OperationView> {
    let mut specs: BTreeMap<OperationId, OperationSpec> = BTreeMap::new();
    let mut by_id: BTreeMap<OperationId, BTreeMap<ShardId, OperationPart>> = BTreeMap::new();
    for mut part in parts {
        if let Some(spec) = part.spec.take() {
            let newest = specs.get(&part.id).is_none_or(|known| known.wish.version < spec.wish.version);
            if newest {
                specs.insert(part.id, *spec);
            }
        }
        by_id.entry(part.id).or_default().insert(part.shard, part);
    }
    let view = |(id, parts)| Some(OperationView { spec: specs.remove(&id)?, parts });
    by_id.into_iter().filter_map(view).collect()
}
