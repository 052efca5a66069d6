//! Operations of all nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use forebay_engine::{ItemCount, OperationsSeen, Ordered, RETRY_AFTER};
use forebay_proto::v1::{self, OperationState, operation_update::Schedule};
use forebay_store::{
    OperationDue, OperationId, OperationKind, OperationOrder, OperationPart, OperationProgress,
    OperationSpec, OperationUpdate, OperationWish,
};
use forebay_types::{Namespace, Reason, Refusal, ShardId, Timestamp};

use super::Gather;
use crate::peers::PeerLinks;

/// How long shards may take to commit an order. Those that take longer are told again.
const ORDER_TIMEOUT: Duration = Duration::from_secs(3);

/// An operation, as the shards that answered see it.
#[derive(Debug, Clone)]
pub struct OperationView {
    /// What is to be done. The newest that a shard knows.
    pub spec: OperationSpec,
    /// How far the shards are.
    pub parts: BTreeMap<ShardId, OperationPart>,
}

impl Gather {
    /// Asks the owners of all shards, or that of one, for something about an operation. Those that do not
    /// answer in time are missing; they may do it nevertheless.
    pub async fn order(&self, order: &OperationOrder, only: Option<ShardId>) -> Vec<Ordered> {
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
            let OperationsSeen { parts: some, shards: looked_at } = seen;
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
    pub async fn all_shards(&self) -> Result<(Vec<ShardId>, Vec<ShardId>), Refusal> {
        // There is no such operation: only the shards are asked for.
        let own = self.engine.operations(None, Some(OperationId::default())).await?.shards;
        let all: Vec<ShardId> = self.incomplete(&BTreeSet::new()).await.into_iter().map(ShardId).collect();
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
fn views(parts: Vec<OperationPart>) -> Vec<OperationView> {
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

impl OperationView {
    /// The shards that have not ended their parts, of those that there are.
    pub fn open<'a>(&'a self, all: &'a [ShardId]) -> impl Iterator<Item = ShardId> + 'a {
        let ended = |shard: &ShardId| {
            self.parts.get(shard).is_some_and(|part| part.progress.ended_at.is_some()) || !all.contains(shard)
        };
        self.spec.shards.iter().copied().filter(move |shard| !ended(shard))
    }

    /// The shards that do not know what is wished now.
    pub fn behind<'a>(&'a self, all: &'a [ShardId]) -> impl Iterator<Item = ShardId> + 'a {
        let OperationWish { version, .. } = self.spec.wish;
        let knows = move |shard: &ShardId| {
            let part = self.parts.get(shard);
            part.is_some_and(|part| part.wish.version >= version || part.progress.ended_at.is_some())
                || !all.contains(shard)
        };
        self.spec.shards.iter().copied().filter(move |shard| !knows(shard))
    }

    /// How far it is, over all shards that there are.
    pub fn state(&self, all: &[ShardId]) -> OperationState {
        let ended = self.open(all).next().is_none();
        match (self.spec.wish.cancelled, ended) {
            (true, true) => OperationState::Cancelled,
            (true, false) => OperationState::Cancelling,
            (false, true) => OperationState::Succeeded,
            (false, false) if self.parts.values().all(|part| !has_begun(&part.progress)) => {
                OperationState::Pending
            }
            (false, false) => OperationState::Running,
        }
    }

    /// Changes with each change of the operation.
    pub fn version(&self) -> u64 {
        let of_part = |part: &OperationPart| {
            let OperationProgress { scanned, ended_at, .. } = part.progress;
            1 + scanned + part.wish.version + u64::from(ended_at.is_some())
        };
        self.parts.values().map(of_part).sum()
    }

    /// The message.
    pub fn message(&self, all: &[ShardId], with_shards: bool) -> v1::Operation {
        let Self { spec, parts } = self;
        let mut sum = v1::OperationFigures::default();
        parts.values().for_each(|part| add(&mut sum, &part.progress));
        let shard = |id: &ShardId| {
            let part = parts.get(id);
            let mut figures = v1::OperationFigures::default();
            part.iter().for_each(|part| add(&mut figures, &part.progress));
            let ended = part.is_some_and(|part| part.progress.ended_at.is_some());
            v1::OperationShard { shard: id.0, figures: Some(figures), ended, begun: part.is_some() }
        };
        let shards = if with_shards { spec.shards.iter().map(shard).collect() } else { Vec::new() };
        let state = self.state(all);
        let has_ended = matches!(state, OperationState::Succeeded | OperationState::Cancelled);
        let last = parts.values().filter_map(|part| part.progress.ended_at).max();
        v1::Operation {
            id: spec.id.to_string(),
            figures: Some(sum),
            shards,
            ended_at: last.filter(|_| has_ended).map(time),
            state: state.into(),
            version: self.version(),
            ..described(spec)
        }
    }
}

fn has_begun(progress: &OperationProgress) -> bool {
    progress.scanned > 0 || progress.ended_at.is_some()
}

fn add(sum: &mut v1::OperationFigures, progress: &OperationProgress) {
    sum.scanned += progress.scanned;
    sum.matched += progress.matched;
    sum.changed += progress.changed;
    sum.skipped += progress.skipped;
    sum.failed += progress.failed;
}

/// What an operation is to do.
pub fn described(spec: &OperationSpec) -> v1::Operation {
    let kind = match spec.kind {
        OperationKind::Purge => v1::OperationKind::Purge,
        OperationKind::DeleteDead => v1::OperationKind::DeleteDead,
        OperationKind::Redrive => v1::OperationKind::Redrive,
        OperationKind::ResetLeases => v1::OperationKind::ResetLeases,
        OperationKind::Cancel => v1::OperationKind::Cancel,
        OperationKind::Update => v1::OperationKind::Update,
    };
    v1::Operation {
        namespace: spec.namespace.clone(),
        kind: kind.into(),
        topic: spec.topic.clone(),
        filter: spec.filter.clone(),
        leased: spec.leased,
        to_topic: spec.to_topic.clone(),
        ttl: spec.ttl.and_then(|ttl| ttl.try_into().ok()),
        update: spec.update.as_ref().map(update),
        rate_per_second: spec.wish.rate,
        started_by: spec.who.clone(),
        reason: spec.reason.clone(),
        started_at: Some(time(spec.started_at)),
        ..v1::Operation::default()
    }
}

/// What items get. Whoever may look at operations need not see metadata.
fn update(update: &OperationUpdate) -> v1::OperationUpdate {
    let schedule = update.due.and_then(|due| match due {
        OperationDue::Now => Some(Schedule::Delay(prost_types::Duration::default())),
        OperationDue::Delay(delay) => delay.try_into().ok().map(Schedule::Delay),
        OperationDue::After(at) => Some(Schedule::DeliverAfter(time(at))),
    });
    v1::OperationUpdate {
        priority: update.priority,
        schedule,
        metadata: None,
        ttl: update.ttl.and_then(|ttl| ttl.try_into().ok()),
        metadata_bytes: update.metadata.as_ref().map(|it| u32::try_from(it.len()).unwrap_or(u32::MAX)),
    }
}

fn time(at: Timestamp) -> prost_types::Timestamp {
    let micros = at.as_micros();
    let nanos = i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    prost_types::Timestamp { seconds: micros.div_euclid(1_000_000), nanos }
}

#[cfg(test)]
mod tests {
    use forebay_store::OperationCursor;
    use forebay_types::Seq;

    use super::*;

    const ALL: [ShardId; 3] = [ShardId(1), ShardId(2), ShardId(3)];

    fn wish(version: u64) -> OperationWish {
        OperationWish { version, rate: 10, active: 3, cancelled: version == 9 }
    }

    fn spec(version: u64) -> OperationSpec {
        OperationSpec {
            id: OperationId([1; 16]),
            kind: OperationKind::Purge,
            namespace: "ns".to_owned(),
            topic: "t".to_owned(),
            filter: String::new(),
            leased: false,
            to_topic: String::new(),
            ttl: None,
            update: None,
            limits: None,
            shards: ALL.to_vec(),
            home: ShardId(1),
            who: String::new(),
            reason: String::new(),
            started_at: Timestamp::from_micros(7),
            request: [0; 16],
            wish: wish(version),
        }
    }

    /// A shard's part: the version that it knows, and how many it has looked at. All of them: it has ended.
    fn part(shard: u32, version: u64, scanned: u64) -> OperationPart {
        let progress = OperationProgress {
            as_of: Seq(9),
            as_of_time: Timestamp::from_micros(7),
            as_of_batch: 1,
            cursor: OperationCursor::first(OperationKind::Purge),
            scanned,
            matched: scanned,
            changed: scanned,
            skipped: 0,
            failed: 0,
            ended_at: (scanned == 5).then(|| Timestamp::from_micros(8)),
        };
        let spec = (shard == 1).then(|| Box::new(spec(version)));
        OperationPart { shard: ShardId(shard), id: OperationId([1; 16]), wish: wish(version), progress, spec }
    }

    fn view(parts: &[OperationPart]) -> OperationView {
        views(parts.to_vec()).pop().unwrap()
    }

    #[test]
    fn parts_are_put_together_once_the_home_shard_has_answered() {
        assert!(views(vec![part(2, 1, 0)]).is_empty());
        let message = view(&[part(1, 1, 3), part(2, 1, 5)]).message(&ALL, true);
        assert_eq!((message.figures.unwrap().changed, message.shards.len()), (8, 3));
        assert!(!message.shards[2].begun && message.shards[1].ended && message.ended_at.is_none());
    }

    #[test]
    fn the_state_follows_from_the_parts() {
        let state = |parts: &[OperationPart], all: &[ShardId]| view(parts).state(all);
        let idle = [part(1, 1, 0), part(2, 1, 0)];
        assert_eq!(state(&idle, &ALL), OperationState::Pending);
        assert_eq!(state(&[part(1, 1, 5), part(2, 1, 0)], &ALL), OperationState::Running);
        let two = [part(1, 1, 5), part(2, 1, 5)];
        assert_eq!(state(&two, &ALL), OperationState::Running, "one has not begun");
        assert_eq!(state(&two, &ALL[..2]), OperationState::Succeeded, "that one was removed");
        assert_eq!(state(&[part(1, 9, 5), part(2, 9, 3)], &ALL), OperationState::Cancelling);
        assert_eq!(state(&[part(1, 9, 5), part(2, 9, 5)], &ALL[..2]), OperationState::Cancelled);
    }

    #[test]
    fn shards_that_do_not_know_the_newest_wish_are_told_unless_they_have_ended() {
        let one = view(&[part(1, 2, 3), part(2, 1, 3)]);
        assert_eq!(one.behind(&ALL).collect::<Vec<_>>(), [ShardId(2), ShardId(3)]);
        let other = view(&[part(1, 2, 3), part(2, 1, 5), part(3, 2, 0)]);
        assert_eq!(other.behind(&ALL).count(), 0);
        assert_eq!(other.open(&ALL).collect::<Vec<_>>(), [ShardId(1), ShardId(3)]);
    }
}
