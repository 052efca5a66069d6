//! The end of a delivery, and what it does to the item. `lifecycle.rs` in `types` decides between again,
//! dead and expired.

use std::time::Duration;

use forebay_store::{DeadLetter, DueKey, LeaseEntry, Requeue, Sweep, Tally};
use forebay_types::{
    DeathCause, DeliveryPolicy, Ending, Failure, FailureCause, ItemAttributes, ItemId, Key, Receipt, Seq,
    State, Timestamp, after_failure, after_rejection, after_release,
};
use rustc_hash::FxHashSet;

use super::builder::BatchBuilder;
use crate::{
    api::{NackAction, Settlement},
    planted::{Bug, on},
    shard::{
        commit::{
            disk_room::Need,
            in_flight::{PlannedAction, PlannedSettle, SettleEffect},
            row_costs::RowKind,
        },
        work::{DeliveryEnd, ReadyItem, SettleKind, SettleRequest, Turn},
    },
};

/// Leases that one batch ends because they timed out.
const TIMEOUTS_MAX: usize = 250;

/// Adds settlements that wait, until the batch costs so much.
pub(super) fn add_requests(builder: &mut BatchBuilder<'_>, most: usize) {
    let mut deferred = Vec::new();
    let dearest = builder.prices.of_settlement();
    builder.shard.intake.settles.begin_by_weight(builder.left(most) / dearest, builder.set);
    while builder.spent < most {
        let Some(Turn { work: request, .. }) = builder.shard.intake.settles.pop(|_| true) else { break };
        let held_back = builder.allowed < Need::Items && need_of(builder, &request) > builder.allowed;
        if held_back {
            deferred.push(request);
        } else if builder.claims.contains(request.receipt.item.seq) {
            deferred.extend(repeat(builder, request));
        } else {
            add(builder, request);
        }
    }
    for request in deferred.into_iter().rev() {
        builder.shard.intake.settles.unpop(request);
    }
}

/// A second settlement of an item. If it says what the first said, both are answered alike: of two
/// extensions the later one counts. Otherwise it is returned, and waits for the next batch.
fn repeat(builder: &mut BatchBuilder<'_>, request: SettleRequest) -> Option<SettleRequest> {
    let seq = request.receipt.item.seq;
    let Some(first) = builder.claims.first_of(&request, &mut builder.planned) else {
        // A later request for the item must not go before it.
        builder.claims.insert(seq);
        return Some(request);
    };
    if let (SettleKind::Extend { lease: span }, SettleEffect::Extended(deadline)) =
        (&request.kind, &mut first.effect)
    {
        let end = builder.moment.now.plus(span.unwrap_or(first.lease.attributes.lease()));
        if end != *deadline {
            *deadline = end;
            let entries = builder.batch.leases.iter_mut().rev();
            entries.filter(|entry| entry.seq == seq).take(1).for_each(|entry| entry.deadline = end);
        }
    }
    first.repeats.push(request);
    None
}

/// How many leases the batch may end because they timed out.
pub(super) fn timeouts_due(builder: &BatchBuilder<'_>) -> usize {
    let shard = &builder.shard;
    if builder.moment.at < shard.commit.timeouts_after || builder.allowed < Need::Rows {
        return 0;
    }
    shard.contents.leases.timed_out(builder.moment.now).take(TIMEOUTS_MAX).count()
}

/// How much room on the disk a settlement needs.
fn need_of(builder: &BatchBuilder<'_>, request: &SettleRequest) -> Need {
    let Some(lease) = builder.shard.contents.leases.get(request.receipt.item.seq) else {
        return Need::Nothing;
    };
    match request.kind {
        SettleKind::Ack | SettleKind::Purge | SettleKind::Cancel => Need::Nothing,
        SettleKind::Extend { .. } | SettleKind::Reset | SettleKind::FetchTimeout => Need::Rows,
        SettleKind::Nack { action: NackAction::Release(_), .. } => Need::Rows,
        SettleKind::Nack { action: NackAction::DeadLetter, .. } => Need::Items,
        SettleKind::Nack { action: NackAction::Fail(delay), .. } => {
            need_of_failure(failed(builder, lease, builder.moment.now, delay).0)
        }
        SettleKind::LeaseTimeout => need_of_failure(failed(builder, lease, lease.deadline, None).0),
    }
}

/// How much room on the disk a failed delivery needs.
const fn need_of_failure(ending: Ending) -> Need {
    match ending {
        Ending::Again | Ending::Sooner(_) => Need::Rows,
        Ending::Dead | Ending::TooLate => Need::Items,
        Ending::Expired => Need::Nothing,
    }
}

/// Adds the ends of leases that timed out, until the batch costs so much. An ack that waits comes first.
pub(super) fn add_timeouts(builder: &mut BatchBuilder<'_>, most: usize) {
    let room = builder.left(most).div_ceil(builder.prices.of(RowKind::Return));
    let room = timeouts_due(builder).min(room);
    if room == 0 {
        return;
    }
    // A receipt that is over, or made up, holds up nothing.
    let settles =
        builder.shard.intake.settles.iter().filter(|request| builder.shard.is_open(&request.receipt));
    let waiting: FxHashSet<Seq> = settles.map(|request| request.receipt.item.seq).collect();
    let shard = builder.shard.id;
    let timed_out: Vec<SettleRequest> = (builder.shard.contents.leases.timed_out(builder.moment.now))
        .filter(|lease| !builder.claims.contains(lease.seq) && !waiting.contains(&lease.seq))
        .filter(|lease| need_of_failure(failed(builder, lease, lease.deadline, None).0) <= builder.allowed)
        .take(room)
        .map(|lease| SettleRequest {
            namespace: builder.shard.namespace_of(lease.topic),
            receipt: Receipt {
                item: ItemId { shard, seq: lease.seq },
                delivery: lease.delivery(),
                nonce: lease.nonce,
            },
            kind: match lease.attributes.policy {
                DeliveryPolicy::AtLeastOnce => SettleKind::LeaseTimeout,
                DeliveryPolicy::AtMostOnce => SettleKind::FetchTimeout,
            },
            slot: None,
        })
        .collect();
    for request in timed_out {
        add(builder, request);
    }
}

/// Adds one end or extension of a delivery, if that is still open.
pub(super) fn add(builder: &mut BatchBuilder<'_>, request: SettleRequest) {
    let receipt = request.receipt;
    let leases = &builder.shard.contents.leases;
    // The node that took the call has compared the namespace with the receipt's. Here it is the item's own.
    let topics = &builder.shard.contents.topics;
    let is_own = |lease: &LeaseEntry| {
        topics.get(lease.topic).is_none_or(|topic| topic.name.namespace == request.namespace)
    };
    let found = leases.find(receipt.item.seq).filter(|(_, lease)| is_own(lease)).filter(|(_, lease)| {
        lease.delivery() == receipt.delivery && lease.nonce == receipt.nonce || on(Bug::StaleReceipt)
    });
    let Some((position, lease)) = found.map(|found| (found.0, leases.as_of_now(found))) else {
        builder.stale.push(request);
        return;
    };
    builder.close(position);
    builder.claims.settles(lease.seq, &builder.planned);
    let effect = match &request.kind {
        SettleKind::Ack => ack(builder, &lease),
        SettleKind::Nack { action, metadata, reason } => {
            let metadata = metadata.as_deref().filter(|_| !on(Bug::MetadataIgnored));
            nack(builder, &lease, *action, metadata, reason)
        }
        SettleKind::Extend { lease: span } => extend(builder, &lease, *span),
        SettleKind::LeaseTimeout => time_out(builder, &lease),
        SettleKind::Purge => {
            builder.batch.purges.push(lease.seq);
            take_out(builder, &lease)
        }
        SettleKind::Cancel => {
            builder.batch.cancels.push(lease.seq);
            take_out(builder, &lease)
        }
        SettleKind::Reset | SettleKind::FetchTimeout => {
            nack(builder, &lease, NackAction::Release(Duration::ZERO), None, "")
        }
    };
    builder.spend(row_kind(&effect), 1);
    tally(builder.tally(lease.topic), &request.kind, &effect);
    builder.planned.push(PlannedAction::Settle(Box::new(PlannedSettle {
        request,
        repeats: Vec::new(),
        lease,
        effect,
    })));
}

/// The kind of row that an end, or an extension, is in the store.
const fn row_kind(effect: &SettleEffect) -> RowKind {
    match effect {
        SettleEffect::Deleted => RowKind::Deletion,
        SettleEffect::DeadLettered(_) => RowKind::DeadLetter,
        SettleEffect::Ready(..) | SettleEffect::Scheduled(_) => RowKind::Return,
        SettleEffect::Extended(_) => RowKind::Extension,
    }
}

/// Counts how a delivery ended, if it did, and how its item left.
fn tally(tally: &mut Tally, kind: &SettleKind, effect: &SettleEffect) {
    match kind.end() {
        Some(DeliveryEnd::Acked) => tally.acked += 1,
        Some(DeliveryEnd::Failed) => tally.failed += 1,
        Some(DeliveryEnd::Returned) => tally.returned += 1,
        None => {}
    }
    tally.dead_lettered += i64::from(matches!(effect, SettleEffect::DeadLettered(_)));
    match (kind, effect) {
        (SettleKind::Ack, _) => {}
        (SettleKind::Purge | SettleKind::Cancel, _) => tally.removed += 1,
        // Nobody acked it.
        (_, SettleEffect::Deleted) => tally.expired += 1,
        _ => {}
    }
}

fn ack(builder: &mut BatchBuilder<'_>, lease: &LeaseEntry) -> SettleEffect {
    builder.delete(lease.topic, lease.seq, lease.attributes.expires_at);
    SettleEffect::Deleted
}

/// As an ack, for an operation or a change of the item.
fn take_out(builder: &mut BatchBuilder<'_>, lease: &LeaseEntry) -> SettleEffect {
    if let Some(at) = lease.attributes.expires_at {
        builder.batch.expiry_deletes.push(DueKey { at, seq: lease.seq });
    }
    builder.count(lease.topic, -1, 0, 0);
    SettleEffect::Deleted
}

fn nack(
    builder: &mut BatchBuilder<'_>,
    lease: &LeaseEntry,
    action: NackAction,
    metadata: Option<&[u8]>,
    reason: &str,
) -> SettleEffect {
    let (now, expires_at) = (builder.moment.now, lease.attributes.expires_at);
    let ((ending, due), cause) = match action {
        NackAction::Fail(delay) => (failed(builder, lease, now, delay), Some(FailureCause::Nacked)),
        NackAction::Release(delay) => {
            let due = now.plus(delay);
            ((after_release(expires_at, now, due), due), None)
        }
        NackAction::DeadLetter => ((after_rejection(expires_at, now), now), Some(FailureCause::DeadLettered)),
    };
    let rank = match action {
        // Without a delay it keeps its old place.
        NackAction::Release(delay) if delay.is_zero() && !on(Bug::ReleaseLosesPlace) => lease.rank,
        _ => due.as_micros(),
    };
    let failure = cause.map(|cause| failure_of(lease, now, cause, reason));
    end(builder, lease, ending, Again { rank, metadata, failure }, reason)
}

fn time_out(builder: &mut BatchBuilder<'_>, lease: &LeaseEntry) -> SettleEffect {
    let failure = Some(failure_of(lease, lease.deadline, FailureCause::LeaseEnded, ""));
    let (ending, due) = failed(builder, lease, lease.deadline, None);
    end(builder, lease, ending, Again { rank: due.as_micros(), metadata: None, failure }, "")
}

/// The state of an item after a delivery that failed at this time, and when it is to be back: after the
/// delay, or the one that is set for its topic.
fn failed(
    builder: &BatchBuilder<'_>,
    lease: &LeaseEntry,
    at: Timestamp,
    delay: Option<Duration>,
) -> (Ending, Timestamp) {
    let set = || builder.settings_of(lease.topic).retry_delay.unwrap_or_default();
    let due = at.plus(delay.unwrap_or_else(set));
    let ItemAttributes { failures, max_attempts, expires_at, .. } = lease.attributes;
    let now = builder.moment.now;
    match after_failure(failures + 1, max_attempts, expires_at, now, due) {
        Ending::Sooner(_) | Ending::TooLate if on(Bug::DelayPastExpiry) => (Ending::Again, due),
        ending => (ending, due),
    }
}

/// How an item waits again, if it does.
struct Again<'a> {
    /// Its place in its priority: the time at which it is back.
    rank: i64,
    /// New metadata.
    metadata: Option<&'a [u8]>,
    /// How the delivery failed. `None`: it did not.
    failure: Option<Failure>,
}

/// Ends a delivery that was not acked.
fn end(
    builder: &mut BatchBuilder<'_>,
    lease: &LeaseEntry,
    ending: Ending,
    again: Again<'_>,
    reason: &str,
) -> SettleEffect {
    let Again { metadata, failure, .. } = again;
    match (ending, failure) {
        (Ending::Expired, _) => ack(builder, lease),
        (Ending::Dead, Some(failure)) => {
            let cause = DeathCause::Failed(failure.cause);
            dead_letter(builder, lease, cause, reason, metadata, failure)
        }
        (Ending::TooLate, Some(failure)) => {
            dead_letter(builder, lease, DeathCause::ExpiredFailing, reason, metadata, failure)
        }
        (Ending::Sooner(due), failure) => {
            let again = Again { rank: due.as_micros(), failure, ..again };
            match requeue(builder, lease, again) {
                SettleEffect::Scheduled(_) => SettleEffect::Scheduled(Settlement { delay_cut: true }),
                ready => ready,
            }
        }
        // Nothing dies of a release.
        (Ending::Again | Ending::Dead | Ending::TooLate, failure) => {
            requeue(builder, lease, Again { failure, ..again })
        }
    }
}

/// How a delivery failed, as the item remembers it.
fn failure_of(lease: &LeaseEntry, ended_at: Timestamp, cause: FailureCause, reason: &str) -> Failure {
    Failure {
        attempt: lease.delivery(),
        consumer: lease.consumer.clone(),
        leased_at: lease.leased_at,
        ended_at,
        cause,
        reason: Failure::cut(reason),
    }
}

fn extend(builder: &mut BatchBuilder<'_>, lease: &LeaseEntry, span: Option<Duration>) -> SettleEffect {
    let span = span.unwrap_or(lease.attributes.lease());
    let span = if on(Bug::ExtendsBriefly) { Duration::from_millis(200) } else { span };
    let deadline = builder.moment.now.plus(span);
    builder.batch.leases.push(LeaseEntry { deadline, ..lease.clone() });
    SettleEffect::Extended(deadline)
}

/// Back to its topic: ready if the rank's time has come, else scheduled.
fn requeue(builder: &mut BatchBuilder<'_>, lease: &LeaseEntry, again: Again<'_>) -> SettleEffect {
    let Again { rank, metadata, failure } = again;
    let failures = lease.attributes.failures + u32::from(failure.is_some());
    let waits = Timestamp::from_micros(rank) > builder.moment.now && rank != lease.rank;
    let state = if waits { State::Scheduled } else { State::Ready };
    let uncounted = u32::from(on(Bug::DeliveryNotCounted));
    builder.batch.requeues.push(Requeue {
        seq: lease.seq,
        state,
        rank,
        deliveries: lease.delivery() - uncounted,
        failures,
        metadata: metadata.map(<[u8]>::to_vec),
        failure: failure.filter(|_| !on(Bug::FailureForgotten)),
    });
    if waits {
        builder.count(lease.topic, -1, 1, 0);
        builder.added.add(Sweep::Due, Timestamp::from_micros(rank));
        return SettleEffect::Scheduled(Settlement::default());
    }
    let mut item = ReadyItem::from_lease(lease, failures);
    item.attributes.deliveries -= uncounted;
    let added = metadata.map_or(0, <[u8]>::len);
    item.bytes = item.bytes.saturating_add(u32::try_from(added).unwrap_or(u32::MAX));
    SettleEffect::Ready(Key { priority: lease.priority, rank, seq: lease.seq }, item)
}

fn dead_letter(
    builder: &mut BatchBuilder<'_>,
    lease: &LeaseEntry,
    cause: DeathCause,
    last_error: &str,
    metadata: Option<&[u8]>,
    failure: Failure,
) -> SettleEffect {
    let expires_at = builder.dead_letter_end(&builder.shard.name_of(lease.topic), builder.moment.now);
    builder.batch.dead_letters.push(DeadLetter {
        seq: lease.seq,
        deliveries: lease.delivery(),
        failures: lease.attributes.failures + 1,
        reason: if on(Bug::ReasonForgotten) { String::new() } else { cause.as_str().to_owned() },
        last_error: last_error.to_owned(),
        died_at: builder.moment.now,
        expires_at,
        metadata: metadata.map(<[u8]>::to_vec),
        failure,
    });
    builder.added.add(Sweep::Retention, expires_at);
    if let Some(at) = lease.attributes.expires_at {
        builder.batch.expiry_deletes.push(DueKey { at, seq: lease.seq });
    }
    builder.count(lease.topic, -1, 0, 1);
    SettleEffect::DeadLettered(cause)
}
