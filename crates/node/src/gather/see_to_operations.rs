//! Sees to the operations whose home shard this node owns: shards that have not heard of one, or of its
//! latest change, are told again, and the rate is split among those that have not ended.
//!
//! All that this needs is in the home shard. Whoever owns it next goes on.

use std::{collections::HashSet, time::Duration};

use forebay_store::{OperationChange, OperationId, OperationOrder, OperationPart, OperationSpec};
use forebay_types::ShardId;

use super::Gather;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Gather {
    /// Sees to operations until its task ends.
    pub async fn see_to_operations(self) {
        let mut done = HashSet::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.see_to_all(&mut done).await;
        }
    }

    /// `done`: those that need nothing any more.
    async fn see_to_all(&self, done: &mut HashSet<OperationId>) {
        // An engine that has stopped has none.
        let Ok(seen) = self.engine.operations(None, None).await else { return };
        let ids: HashSet<OperationId> = seen.parts.iter().map(|part| part.id).collect();
        done.retain(|id| ids.contains(id));
        let open: Vec<OperationPart> =
            seen.parts.into_iter().filter(|part| !done.contains(&part.id)).collect();
        if open.is_empty() {
            return;
        }
        let Ok((_, all)) = self.all_shards().await else { return };
        for spec in open.into_iter().filter_map(|part| part.spec) {
            if self.see_to(*spec.clone(), &all).await {
                done.insert(spec.id);
            }
        }
    }

    /// Returns whether the operation needs nothing any more.
    async fn see_to(&self, spec: OperationSpec, all: &[ShardId]) -> bool {
        let (id, namespace) = (spec.id, spec.namespace.as_str().into());
        let Ok((views, _)) = self.operations(&namespace, Some(id)).await else { return false };
        let Some(view) = views.into_iter().next() else { return false };
        let behind: Vec<ShardId> = view.behind(all).collect();
        if !behind.is_empty() {
            let follow = OperationOrder::Follow(Box::new(view.spec.clone()));
            let only = behind.first().copied().filter(|_| behind.len() == 1);
            self.order(&follow, only).await;
        }
        let open = u32::try_from(view.open(all).count()).unwrap_or(u32::MAX);
        if open > 0 && open != view.spec.wish.active {
            let change = OperationChange::Active(open);
            let order = OperationOrder::Change { id, namespace: spec.namespace, change };
            self.order(&order, Some(spec.home)).await;
        }
        behind.is_empty() && open == 0
    }
}
