//! Sees to the operations whose home shard this node owns: shards that have not heard of one, or of its
//! latest change, are told again, and the rate is split among those that have not ended.
//!
//! All that this needs is in the home shard. Whoever owns it next goes on.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use forebay_proto::v1::OperationState;
use forebay_store::{OperationChange, OperationId, OperationOrder, OperationSpec};
use forebay_types::ShardId;
use tokio::time::Instant;

use super::{Gather, OperationView};

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An operation that stands still for so long is named in metrics.
const NAMED_AFTER: Duration = Duration::from_mins(1);
/// At most this many operations are named.
const NAMED_MAX: usize = 100;
/// The states, as metrics name them.
const STATES: [(OperationState, &str); 6] = [
    (OperationState::Pending, "pending"),
    (OperationState::Running, "running"),
    (OperationState::Cancelling, "cancelling"),
    (OperationState::Succeeded, "succeeded"),
    (OperationState::Cancelled, "cancelled"),
    (OperationState::Failed, "failed"),
];

/// State of the operations whose home shard is here, as far as it is known.
#[derive(Default)]
struct OperationStates {
    /// Operations that need nothing any more, with how they ended.
    done: HashMap<OperationId, OperationState>,
    /// The others: state, version, and since when that has been the same.
    open: HashMap<OperationId, (OperationState, u64, Instant)>,
    /// Operations that stood still for so long that they have a series of their own, which stays as long as
    /// the process.
    named: HashSet<OperationId>,
}

impl Gather {
    /// Sees to operations until its task ends.
    pub async fn see_to_operations(self) {
        let mut seen = OperationStates::default();
        seen.report();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.see_to_all(&mut seen).await;
            seen.report();
        }
    }

    async fn see_to_all(&self, known: &mut OperationStates) {
        // An engine that has stopped has none.
        let Ok(seen) = self.engine.operations(None, None).await else { return };
        let ids: HashSet<OperationId> = seen.parts.iter().map(|part| part.id).collect();
        known.done.retain(|id, _| ids.contains(id));
        known.open.retain(|id, _| ids.contains(id));
        let open: Vec<_> = seen.parts.into_iter().filter(|part| !known.done.contains_key(&part.id)).collect();
        if open.is_empty() {
            return;
        }
        let Ok((_, all)) = self.all_shards().await else { return };
        for spec in open.into_iter().filter_map(|part| part.spec) {
            let id = spec.id;
            let Some((view, is_done)) = self.see_to(*spec, &all).await else { continue };
            let state = view.state(&all);
            if is_done {
                known.open.remove(&id);
                known.done.insert(id, state);
            } else {
                known.note(id, state, &view);
            }
        }
    }

    /// Returns how the operation is, and whether it needs nothing any more.
    async fn see_to(&self, spec: OperationSpec, all: &[ShardId]) -> Option<(OperationView, bool)> {
        let (id, namespace) = (spec.id, spec.namespace.as_str().into());
        let (views, _) = self.operations(&namespace, Some(id)).await.ok()?;
        let view = views.into_iter().next()?;
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
        let is_done = behind.is_empty() && open == 0;
        Some((view, is_done))
    }
}

impl OperationStates {
    /// An operation has not ended.
    fn note(&mut self, id: OperationId, state: OperationState, view: &OperationView) {
        let version = view.version();
        match self.open.get_mut(&id) {
            Some((known, same, _)) if *same == version => *known = state,
            _ => {
                self.open.insert(id, (state, version, Instant::now()));
            }
        }
    }

    /// Sets the gauges.
    fn report(&mut self) {
        let open = self.open.values().map(|(state, ..)| *state);
        let states: Vec<OperationState> = self.done.values().copied().chain(open).collect();
        for (state, name) in STATES {
            let count = states.iter().filter(|other| **other == state).count();
            metrics::gauge!("forebay_operations", "state" => name).set(count as f64);
        }
        self.report_idle();
    }

    /// Says how long operations stand still: those that do so for long by name, the others together.
    fn report_idle(&mut self) {
        // One that waits for its turn may stand still for long.
        let is_running = |state| matches!(state, OperationState::Running | OperationState::Cancelling);
        let running = self.open.iter().filter(|(_, (state, ..))| is_running(*state));
        let idle: HashMap<OperationId, Duration> =
            running.map(|(id, (.., since))| (*id, since.elapsed())).collect();
        let long = idle.iter().filter(|(_, idle)| **idle >= NAMED_AFTER).map(|(id, _)| *id);
        for id in long.collect::<Vec<_>>() {
            if self.named.len() < NAMED_MAX {
                self.named.insert(id);
            }
        }
        for id in &self.named {
            let seconds = idle.get(id).map_or(f64::NAN, Duration::as_secs_f64);
            metrics::gauge!("forebay_operation_idle_seconds", "operation" => id.to_string()).set(seconds);
        }
        let others = idle.iter().filter(|(id, _)| !self.named.contains(*id));
        let longest = others.map(|(_, idle)| *idle).max().unwrap_or_default();
        metrics::gauge!("forebay_operation_idle_seconds", "operation" => "").set(longest.as_secs_f64());
    }
}
