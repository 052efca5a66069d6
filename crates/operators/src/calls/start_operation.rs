//! StartOperation: checks a request, counts what it would change where that is asked for, and has its home
//! shard begin it.

use std::{collections::BTreeMap, time::Duration};

use forebay_access::Identity;
use forebay_edge::{
    audit::AuditNote,
    random::random_bytes,
    request_ids::{digest_of, operation_of, reused},
    rpc::fields,
};
use forebay_engine::{ItemCount, ItemUpdate, RETRY_AFTER, filter_fields};
use forebay_proto::v1::{self, operation_update, update_item_request};
use forebay_store::{
    OperationId, OperationKind, OperationOrder, OperationRow, OperationSpec, OperationUpdate, OperationWish,
};
use forebay_types::{ItemId, Limits, Namespace, Reason, Refusal, ShardId, cut_text, filter::Filter};
use prost::Message as _;

use super::{
    context::Admin,
    ctx::Ctx,
    operations::{OPERATION_BYTES, RATE_MAX, look},
    update_item::values,
};
use crate::gather::{LookExtent, described};

/// The rate of a request that names none.
const RATE_DEFAULT: u32 = 5_000;
/// How long a dry run counts.
const COUNT_TIME: Duration = Duration::from_secs(2);
/// How long it is counted before a change is made.
const CHECK_TIME: Duration = Duration::from_secs(5);
/// Items that a dry run names.
const SAMPLES_MAX: usize = 20;
/// Bytes of a reason.
const REASON_BYTES: usize = 1 << 10;
/// The longest metadata that items get: each shard keeps it, and lists of operations bring it along.
const METADATA_BYTES: usize = 1 << 10;
/// Shards that are asked to be the home, until one answers.
const HOMES_TRIED: usize = 3;

/// Serves StartOperation.
pub async fn start(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::StartOperationRequest,
) -> Result<v1::StartOperationResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let started = run(admin, ctx, namespace, request).await?;
    let operation_id = started.operation.as_ref().map(|it| it.id.clone()).unwrap_or_default();
    ctx.note(AuditNote { operation_id, ..AuditNote::default() });
    Ok(started)
}

/// The same for a call whose bytes are counted for the namespace.
pub async fn run(
    admin: &Admin,
    ctx: &Ctx,
    namespace: Namespace,
    request: v1::StartOperationRequest,
) -> Result<v1::StartOperationResponse, Refusal> {
    let mut spec = spec(admin, &ctx.caller, &namespace, &request)?;
    let (own, all) = admin.gather.all_shards().await?;
    spec.shards.clone_from(&all);
    if request.dry_run {
        return dry_run(admin, &namespace, &spec, &all).await;
    }
    if let Some(answer) = repeated(admin, &namespace, &spec, &request).await? {
        return Ok(answer);
    }
    if request.limit > 0 || request.expect_at_most.is_some() {
        let counts = admin.gather.count_items(&spec, CHECK_TIME).await?;
        check_expectation(&request, &counts, &all)?;
        let most = request.expect_at_most.unwrap_or(u64::MAX);
        spec.limits = Some(split(&counts, if request.limit == 0 { most } else { request.limit.min(most) }));
    }
    spec.wish.active = u32::try_from(all.len()).unwrap_or(u32::MAX).max(1);
    let row = begin(admin, spec, own, &all).await?;
    // Nodes that do not answer are told again by the owner of the home shard.
    admin.gather.order(&OperationOrder::Follow(Box::new(row.spec.clone())), None).await;
    let (view, all, looked_at) = look(admin, &namespace, row.spec.id).await?;
    let asked = LookExtent { all: &all, looked_at: &looked_at, now: admin.clock.wall() };
    let operation = view.message(asked, true);
    ctx.call.reserve_answer(operation.encoded_len())?;
    Ok(v1::StartOperationResponse {
        incomplete_shards: all.iter().map(|id| id.0).filter(|id| !looked_at.contains(id)).collect(),
        operation: Some(operation),
        exact: false,
        sample_item_ids: Vec::new(),
    })
}

/// Specification that the request asks for, checked.
fn spec(
    admin: &Admin,
    caller: &Identity,
    namespace: &Namespace,
    request: &v1::StartOperationRequest,
) -> Result<OperationSpec, Refusal> {
    let limits = &admin.rules.limits;
    let kind = kind(request)?;
    fields::topic(limits, "topic", &request.topic)?;
    Filter::parse(&request.filter, filter_fields(kind))?;
    let only_for = |field: &str, is_set: bool, of: OperationKind| match is_set && kind != of {
        true => Err(Refusal::field(field, "does not belong to this kind of operation")),
        false => Ok(()),
    };
    only_for("leased", request.leased, OperationKind::Purge)?;
    only_for("to_topic", !request.to_topic.is_empty(), OperationKind::Redrive)?;
    only_for("ttl", request.ttl.is_some(), OperationKind::Redrive)?;
    if !request.to_topic.is_empty() {
        fields::topic(limits, "to_topic", &request.to_topic)?;
    }
    let ttl = request.ttl.as_ref().map(|ttl| fields::ttl(limits, "ttl", ttl)).transpose()?;
    let update = update(limits, kind, request.update.as_ref())?;
    only_for("max_redrives", request.max_redrives.is_some(), OperationKind::Redrive)?;
    let max_redrives = request.max_redrives.map(|most| {
        fields::within("max_redrives", most as usize, 1, usize::from(u16::MAX))?;
        Ok(u16::try_from(most).unwrap_or(u16::MAX))
    });
    let max_redrives = max_redrives.transpose()?;
    let rate = if request.rate_per_second == 0 { RATE_DEFAULT } else { request.rate_per_second };
    fields::within("rate_per_second", rate as usize, 1, RATE_MAX as usize)?;
    let mut reason = request.reason.clone();
    cut_text(&mut reason, REASON_BYTES);
    let request_id = fields::key(limits, "request_id", request.request_id.clone())?;
    let id = match &request_id {
        Some(text) => operation_of(caller, namespace, text),
        None => random_bytes()
            .map_err(|error| Refusal::new(Reason::Overloaded, error.to_string()).retry_after(RETRY_AFTER))?,
    };
    let root = (!caller.is_operator()).then(|| digest_of(caller.root().as_bytes()));
    let who = if caller.name.is_empty() { &caller.id } else { &caller.name };
    Ok(OperationSpec {
        id: OperationId(id),
        kind,
        namespace: namespace.to_string(),
        topic: request.topic.clone(),
        filter: request.filter.clone(),
        leased: request.leased,
        to_topic: request.to_topic.clone(),
        ttl,
        update,
        max_redrives,
        limits: None,
        shards: Vec::new(),
        home: ShardId(0),
        who: who.chars().take(200).collect(),
        reason,
        started_at: admin.clock.wall(),
        request: OperationSpec::request_of(digest_of(&request.encode_to_vec()), root),
        wish: OperationWish { version: 1, rate, active: 1, cancelled: false },
    })
}

/// Kind of the work to be done.
fn kind(request: &v1::StartOperationRequest) -> Result<OperationKind, Refusal> {
    Ok(match request.kind() {
        v1::OperationKind::Purge => OperationKind::Purge,
        v1::OperationKind::Redrive => OperationKind::Redrive,
        v1::OperationKind::DeleteDead => OperationKind::DeleteDead,
        v1::OperationKind::ResetLeases => OperationKind::ResetLeases,
        v1::OperationKind::Cancel => OperationKind::Cancel,
        v1::OperationKind::Update => OperationKind::Update,
        v1::OperationKind::Unspecified => {
            let message = "must be OPERATION_KIND_PURGE, _REDRIVE, _DELETE_DEAD, _RESET_LEASES, _CANCEL or \
                           _UPDATE";
            return Err(Refusal::field("kind", message));
        }
    })
}

/// Values that items are to have, of an update.
fn update(
    limits: &Limits,
    kind: OperationKind,
    update: Option<&v1::OperationUpdate>,
) -> Result<Option<OperationUpdate>, Refusal> {
    let update = match (kind, update) {
        (OperationKind::Update, update) => update.cloned().unwrap_or_default(),
        (_, None) => return Ok(None),
        (_, Some(_)) => return Err(Refusal::field("update", "does not belong to this kind of operation")),
    };
    if update.metadata_bytes.is_some() {
        return Err(Refusal::field("update.metadata_bytes", "is only for answers"));
    }
    let metadata = update.metadata.as_ref();
    metadata.map_or(Ok(()), |it| fields::bytes("update.metadata", it.len(), METADATA_BYTES))?;
    let schedule = update.schedule.map(|schedule| match schedule {
        operation_update::Schedule::Delay(delay) => update_item_request::Schedule::Delay(delay),
        operation_update::Schedule::DeliverAfter(at) => update_item_request::Schedule::DeliverAfter(at),
    });
    let request = v1::UpdateItemRequest {
        priority: update.priority,
        schedule,
        metadata: update.metadata,
        ttl: update.ttl,
        ..v1::UpdateItemRequest::default()
    };
    let ItemUpdate { priority, schedule, metadata, ttl } =
        values(limits, &request).map_err(|refusal| fields::below("update", refusal))?;
    Ok(Some(OperationUpdate { priority, due: schedule, metadata: metadata.map(Vec::from), ttl }))
}

/// Effect that an operation would have.
async fn dry_run(
    admin: &Admin,
    namespace: &Namespace,
    spec: &OperationSpec,
    all: &[ShardId],
) -> Result<v1::StartOperationResponse, Refusal> {
    let _look = admin.gather.admit(namespace, OPERATION_BYTES)?;
    let counts = admin.gather.count_items(spec, COUNT_TIME).await?;
    let missing = missing(&counts, all);
    let matched = counts.iter().map(|count| count.matched).sum();
    let samples = counts.iter().flat_map(|count| {
        count.samples.iter().map(|seq| ItemId { shard: count.shard, seq: *seq }.to_string())
    });
    let scanned = counts.iter().map(|count| count.scanned).sum::<Option<u64>>().unwrap_or(0);
    let figures = v1::OperationFigures { matched, scanned, ..v1::OperationFigures::default() };
    Ok(v1::StartOperationResponse {
        operation: Some(v1::Operation { figures: Some(figures), ..described(spec) }),
        exact: missing.is_empty() && counts.iter().all(|count| count.exact),
        sample_item_ids: samples.take(SAMPLES_MAX).collect(),
        incomplete_shards: missing,
    })
}

/// The shards that were not counted.
fn missing(counts: &[ItemCount], all: &[ShardId]) -> Vec<u32> {
    let counted = |shard: &&ShardId| counts.iter().any(|count| count.shard == **shard);
    all.iter().filter(|shard| !counted(shard)).map(|shard| shard.0).collect()
}

/// The operation that an earlier call with the same request id began.
async fn repeated(
    admin: &Admin,
    namespace: &Namespace,
    spec: &OperationSpec,
    request: &v1::StartOperationRequest,
) -> Result<Option<v1::StartOperationResponse>, Refusal> {
    if request.request_id.is_empty() {
        return Ok(None);
    }
    let (view, all, looked_at) = match look(admin, namespace, spec.id).await {
        Ok(found) => found,
        Err(refusal) if refusal.reason == Reason::OperationNotFound => return Ok(None),
        Err(refusal) => return Err(refusal),
    };
    if !view.spec.is_same_request(spec) {
        return Err(reused("was used for another operation"));
    }
    let asked = LookExtent { all: &all, looked_at: &looked_at, now: admin.clock.wall() };
    let operation = Some(view.message(asked, true));
    Ok(Some(v1::StartOperationResponse { operation, ..v1::StartOperationResponse::default() }))
}

/// Refuses what matches more than was expected, or can't be counted.
fn check_expectation(
    request: &v1::StartOperationRequest,
    counts: &[ItemCount],
    all: &[ShardId],
) -> Result<(), Refusal> {
    let Some(most) = request.expect_at_most else { return Ok(()) };
    let matched: u64 = counts.iter().map(|count| count.matched).sum();
    let failed = |message| Err(Refusal::new(Reason::ExpectationFailed, message));
    if matched > most {
        return failed(format!("{matched} items or more match, and {most} were expected at most"));
    }
    let missing = missing(counts, all);
    if !missing.is_empty() || counts.iter().any(|count| !count.exact) {
        return failed(format!(
            "not all items could be counted; shards that could not be asked: {missing:?}"
        ));
    }
    Ok(())
}

/// How a limit is split among the shards: by what they have.
fn split(counts: &[ItemCount], limit: u64) -> BTreeMap<ShardId, u64> {
    let mut left = limit;
    let share = |count: &ItemCount| {
        let share = count.matched.min(left);
        left -= share;
        (count.shard, share)
    };
    counts.iter().map(share).collect()
}

/// Has a shard begin the operation as its home: one of this node, if it has any.
async fn begin(
    admin: &Admin,
    spec: OperationSpec,
    own: Vec<ShardId>,
    all: &[ShardId],
) -> Result<OperationRow, Refusal> {
    let first = usize::from(spec.id.0[15]);
    let turned = |shards: &[ShardId]| {
        let from = first % shards.len().max(1);
        [&shards[from..], &shards[..from]].concat()
    };
    let foreign: Vec<ShardId> = all.iter().copied().filter(|shard| !own.contains(shard)).collect();
    for home in [turned(&own), turned(&foreign)].concat().into_iter().take(HOMES_TRIED) {
        let spec = OperationSpec { home, ..spec.clone() };
        let order = OperationOrder::Begin(Box::new(spec));
        if let Some((_, begun)) = admin.gather.order(&order, Some(home)).await.into_iter().next() {
            return begun;
        }
    }
    let message = "no shard has answered that it begins the operation: it may or may not have begun";
    Err(Refusal::new(Reason::OutcomeUnknown, message).retry_after(RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(shard: u32, matched: u64) -> ItemCount {
        ItemCount { shard: ShardId(shard), matched, scanned: None, samples: Vec::new(), exact: true }
    }

    #[test]
    fn a_limit_is_split_by_what_shards_have() {
        let counts = [count(1, 5), count(2, 3), count(3, 9)];
        let shares = |limit| split(&counts, limit).into_values().collect::<Vec<_>>();
        assert_eq!((shares(100), shares(6), shares(0)), (vec![5, 3, 9], vec![5, 1, 0], vec![0, 0, 0]));
    }

    #[test]
    fn what_matches_more_than_was_expected_is_refused_and_so_is_what_was_not_counted() {
        let all = [ShardId(1), ShardId(2)];
        let request =
            |most| v1::StartOperationRequest { expect_at_most: most, ..v1::StartOperationRequest::default() };
        let check = |most, counts: &[ItemCount]| {
            check_expectation(&request(most), counts, &all).map_err(|refusal| refusal.reason)
        };
        let both = [count(1, 5), count(2, 3)];
        assert_eq!((check(None, &[]), check(Some(8), &both)), (Ok(()), Ok(())));
        assert_eq!(check(Some(7), &both), Err(Reason::ExpectationFailed));
        assert_eq!(check(Some(9), &both[..1]), Err(Reason::ExpectationFailed));
        let cut = [count(1, 5), ItemCount { exact: false, ..count(2, 3) }];
        assert_eq!(check(Some(9), &cut), Err(Reason::ExpectationFailed));
    }
}
