//! An operation, put together from the parts that shards have of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use forebay_edge::rpc::status;
use forebay_proto::{
    time::to_timestamp,
    v1::{self, OperationState, operation_update::Schedule as WireSchedule},
};
use forebay_store::{
    OperationFailure, OperationKind, OperationPart, OperationProgress, OperationSpec, OperationUpdate,
    OperationWish,
};
use forebay_types::{Reason, Refusal, Schedule, ShardId, Timestamp};

/// Extent of a question for the parts of an operation.
#[derive(Debug, Clone, Copy)]
pub struct LookExtent<'a> {
    /// All shards that there are.
    pub all: &'a [ShardId],
    /// Shards that were looked at.
    pub looked_at: &'a BTreeSet<u32>,
    /// When.
    pub now: Timestamp,
}

/// An operation, as the shards that answered see it.
#[derive(Debug, Clone)]
pub struct OperationView {
    /// Work to be done. The newest that a shard knows.
    pub spec: OperationSpec,
    /// How far the shards are.
    pub parts: BTreeMap<ShardId, OperationPart>,
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
        // A part that its owner can't read is wished otherwise once another program owns the shard.
        let is_told = move |part: &OperationPart| {
            let OperationProgress { ended_at, failure, .. } = part.progress;
            let has_ended = ended_at.is_some() && failure != Some(OperationFailure::Unreadable);
            has_ended || part.wish.version >= version
        };
        let knows = move |shard: &ShardId| self.parts.get(shard).is_some_and(is_told) || !all.contains(shard);
        self.spec.shards.iter().copied().filter(move |shard| !knows(shard))
    }

    /// How far it is, over all shards that there are.
    pub fn state(&self, all: &[ShardId]) -> OperationState {
        let ended = self.open(all).next().is_none();
        match (self.spec.wish.cancelled, ended) {
            (true, true) => OperationState::Cancelled,
            (true, false) => OperationState::Cancelling,
            (false, true) if self.parts.values().any(|part| part.progress.failure.is_some()) => {
                OperationState::Failed
            }
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
    pub fn message(&self, asked: LookExtent<'_>, with_shards: bool) -> v1::Operation {
        let Self { spec, parts } = self;
        let mut sum = v1::OperationFigures::default();
        parts.values().for_each(|part| add(&mut sum, &part.progress));
        let shards = spec.shards.iter().map(|id| self.shard(*id, asked));
        let shards = if with_shards { shards.collect() } else { Vec::new() };
        let state = self.state(asked.all);
        let has_ended = self.open(asked.all).next().is_none();
        let last = parts.values().filter_map(|part| part.progress.ended_at).max();
        let first = parts.iter().find_map(|(id, part)| Some(failure(spec, *id, part.progress.failure?)));
        v1::Operation {
            id: spec.id.to_string(),
            figures: Some(sum),
            shards,
            ended_at: last.filter(|_| has_ended).map(|at| to_timestamp(at.max(spec.started_at))),
            state: state.into(),
            version: self.version(),
            error: first.as_ref().map(status::of_shown),
            error_reason: first.map(|why| why.reason.as_str().to_owned()).unwrap_or_default(),
            estimated_total: parts.values().map(|part| total(&part.progress)).sum(),
            estimated_end: self.estimated_end(state, asked.now).map(to_timestamp),
            ..described(spec)
        }
    }

    fn shard(&self, id: ShardId, asked: LookExtent<'_>) -> v1::OperationShard {
        let part = self.parts.get(&id);
        let mut figures = v1::OperationFigures::default();
        part.iter().for_each(|part| add(&mut figures, &part.progress));
        let why = part.and_then(|part| part.progress.failure).map(|why| failure(&self.spec, id, why));
        v1::OperationShard {
            shard: id.0,
            figures: Some(figures),
            ended: part.is_some_and(|part| part.progress.ended_at.is_some()),
            begun: part.is_some(),
            silent: asked.all.contains(&id) && !asked.looked_at.contains(&id.0),
            error: why.as_ref().map(status::of_shown),
            error_reason: why.map(|why| why.reason.as_str().to_owned()).unwrap_or_default(),
        }
    }

    /// Estimates from what is left of the totals, and of that as much as was changed so far of what was
    /// looked at, at the rate.
    fn estimated_end(&self, state: OperationState, now: Timestamp) -> Option<Timestamp> {
        if state != OperationState::Running {
            return None;
        }
        let parts = || self.parts.values().map(|part| &part.progress);
        let left: u64 = parts().map(|progress| total(progress) - progress.scanned).sum();
        let scanned: u64 = parts().map(|progress| progress.scanned).sum();
        let changed: u64 = parts().map(|progress| progress.changed).sum();
        let share = if scanned == 0 { 1.0 } else { changed as f64 / scanned as f64 };
        let seconds = left as f64 * share / f64::from(self.spec.wish.rate.max(1));
        Some(now.plus(Duration::try_from_secs_f64(seconds).ok()?))
    }
}

/// About how many items a part looks at. What it has looked at shows whether it is more.
fn total(progress: &OperationProgress) -> u64 {
    match progress.ended_at {
        Some(_) => progress.scanned,
        None => progress.estimated.max(progress.scanned),
    }
}

/// Why a part does not go on.
fn failure(spec: &OperationSpec, shard: ShardId, failure: OperationFailure) -> Refusal {
    let (reason, what) = match failure {
        OperationFailure::Target => {
            let topic = spec.target().topic;
            let what = format!("topic {topic} can't be made, since there are as many topics as there may be");
            (Reason::TooManyTopics, what)
        }
        OperationFailure::Filter => {
            let what =
                "the owner's program does not understand the filter; for an hour it waits for one that does";
            (Reason::Unimplemented, what.to_owned())
        }
        OperationFailure::Unreadable => {
            let what = "the owner's program can't read the operation, which a later release has written";
            (Reason::Unimplemented, what.to_owned())
        }
    };
    Refusal::new(reason, format!("shard {shard}: {what}"))
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

/// Describes what an operation is to do.
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
        max_redrives: spec.max_redrives.map(u32::from),
        rate_per_second: spec.wish.rate,
        started_by: spec.who.clone(),
        reason: spec.reason.clone(),
        started_at: Some(to_timestamp(spec.started_at)),
        ..v1::Operation::default()
    }
}

/// Update that items get. Whoever may look at operations need not see metadata.
fn update(update: &OperationUpdate) -> v1::OperationUpdate {
    let schedule = update.due.and_then(|due| match due {
        Schedule::Now => Some(WireSchedule::Delay(prost_types::Duration::default())),
        Schedule::Delay(delay) => delay.try_into().ok().map(WireSchedule::Delay),
        Schedule::After(at) => Some(WireSchedule::DeliverAfter(to_timestamp(at))),
    });
    v1::OperationUpdate {
        priority: update.priority,
        schedule,
        metadata: None,
        ttl: update.ttl.and_then(|ttl| ttl.try_into().ok()),
        metadata_bytes: update.metadata.as_ref().map(|it| u32::try_from(it.len()).unwrap_or(u32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::{OperationCursor, OperationId};
    use forebay_types::Seq;

    use super::*;
    use crate::gather::operations::views;

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
            max_redrives: None,
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
            failure: None,
            estimated: 0,
        };
        let spec = (shard == 1).then(|| Box::new(spec(version)));
        OperationPart { shard: ShardId(shard), id: OperationId([1; 16]), wish: wish(version), progress, spec }
    }

    fn view(parts: &[OperationPart]) -> OperationView {
        views(parts.to_vec()).pop().unwrap()
    }

    fn message(parts: &[OperationPart], looked_at: &[u32]) -> v1::Operation {
        let looked_at = looked_at.iter().copied().collect();
        let asked = LookExtent { all: &ALL, looked_at: &looked_at, now: Timestamp::from_micros(1_000) };
        view(parts).message(asked, true)
    }

    #[test]
    fn parts_are_put_together_once_the_home_shard_has_answered() {
        assert!(views(vec![part(2, 1, 0)]).is_empty());
        let message = message(&[part(1, 1, 3), part(2, 1, 5)], &[1, 2]);
        assert_eq!((message.figures.unwrap().changed, message.shards.len()), (8, 3));
        assert!(!message.shards[2].begun && message.shards[1].ended && message.ended_at.is_none());
        let silent: Vec<bool> = message.shards.iter().map(|shard| shard.silent).collect();
        assert_eq!(silent, [false, false, true]);
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
        let unreadable = failed(part(3, 0, 0), OperationFailure::Unreadable, true);
        let cancelled = view(&[part(1, 9, 5), part(2, 9, 3), unreadable]);
        assert_eq!(cancelled.behind(&ALL).collect::<Vec<_>>(), [ShardId(3)], "another owner may read it");
    }

    fn failed(part: OperationPart, why: OperationFailure, ended: bool) -> OperationPart {
        let ended_at = ended.then(|| Timestamp::from_micros(8));
        let progress = OperationProgress { failure: Some(why), ended_at, ..part.progress };
        OperationPart { progress, ..part }
    }

    #[test]
    fn a_part_that_can_not_go_on_is_told_and_fails_the_operation_once_the_others_have_ended() {
        let target = failed(part(2, 1, 3), OperationFailure::Target, true);
        let running = message(&[part(1, 1, 3), target.clone(), part(3, 1, 5)], &[1, 2, 3]);
        assert_eq!(
            (running.state(), running.error_reason.as_str()),
            (OperationState::Running, "TOO_MANY_TOPICS")
        );
        let error = running.shards[1].error.as_ref().unwrap();
        assert!(error.code == 8 && error.message.contains("shard 2: topic t can't be made"), "{error:?}");
        assert!(running.shards[0].error.is_none() && running.ended_at.is_none());
        let ended = message(&[part(1, 1, 5), target.clone(), part(3, 1, 5)], &[1, 2, 3]);
        assert!(ended.state() == OperationState::Failed && ended.ended_at.is_some());
        let waits = failed(part(2, 1, 0), OperationFailure::Filter, false);
        let waiting = message(&[part(1, 1, 5), waits, part(3, 1, 5)], &[1, 2, 3]);
        assert_eq!(
            (waiting.state(), waiting.error_reason.as_str()),
            (OperationState::Running, "UNIMPLEMENTED")
        );
        let cancelled = message(&[part(1, 9, 5), target, part(3, 9, 5)], &[1, 2, 3]);
        assert_eq!(cancelled.state(), OperationState::Cancelled);
    }

    #[test]
    fn the_end_follows_from_what_is_left_and_the_rate() {
        let estimated = |part: OperationPart, estimated| {
            let progress = OperationProgress { estimated, ..part.progress };
            OperationPart { progress, ..part }
        };
        // 5 of 5, 2 of 52, and more than were expected. 50 are left, at 10 a second.
        let parts = [estimated(part(1, 1, 5), 99), estimated(part(2, 1, 2), 52), estimated(part(3, 1, 7), 1)];
        let running = message(&parts, &[1, 2, 3]);
        assert_eq!(running.estimated_total, 5 + 52 + 7);
        assert_eq!(running.estimated_end.unwrap().seconds, 5);
        let half = parts.clone().map(|part| {
            let progress = OperationProgress { scanned: part.progress.scanned, changed: 0, ..part.progress };
            OperationPart { progress, ..part }
        });
        assert_eq!(message(&half, &[1, 2, 3]).estimated_end.unwrap().seconds, 0, "none is changed");
        let ended = message(&[part(1, 1, 5), part(2, 1, 5), part(3, 1, 5)], &[1, 2, 3]);
        assert!(ended.estimated_end.is_none() && ended.estimated_total == 15);
    }
}
