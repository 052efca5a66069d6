//! Orders to the shard's part of an operation: it begins, or is wished otherwise. What is answered is
//! committed.

use forebay_store::{
    OperationChange, OperationId, OperationKind, OperationOrder, OperationProgress, OperationRow,
    OperationSpec, OperationWish,
};
use forebay_types::{Reason, Refusal};

use super::builder::BatchBuilder;
use crate::{
    api::RETRY_AFTER,
    shard::{
        commit::{
            disk_room::Need,
            in_flight::{PlannedAction, PlannedOrder},
            row_costs::RowKind,
        },
        contents::topics::figures::TopicTotals,
        upkeep::operation::{
            bounds::{HOME_BOUNDS, OpenParts, SHARD_BOUNDS},
            operations::OPEN_TENANT_MAX,
        },
    },
};

/// Adds the orders that wait. No two are for one operation.
pub(super) fn add_orders(builder: &mut BatchBuilder<'_>) {
    if builder.allowed < Need::Rows {
        return;
    }
    let mut ids: Vec<OperationId> = Vec::new();
    while let Some(request) = builder.shard.upkeep.operations.next_order() {
        let id = request.order.id();
        if ids.contains(&id) || builder.is_bisecting() && builder.rows > 0 {
            return builder.shard.upkeep.operations.put_order_back(request);
        }
        ids.push(id);
        let result = match &request.order {
            _ if builder.shard.upkeep.operations.is_unreadable(id) => Err(unreadable(builder, id)),
            OperationOrder::Begin(spec) => begin(builder, spec),
            OperationOrder::Follow(spec) => follow(builder, spec),
            OperationOrder::Change { id, namespace, change } => change_one(builder, *id, namespace, *change),
        };
        if let Ok(row) = &result {
            write(builder, row.clone());
        }
        builder.spend(RowKind::Other, 1);
        builder.planned.push(PlannedAction::Order(Box::new(PlannedOrder { request, result })));
    }
}

fn unreadable(builder: &BatchBuilder<'_>, id: OperationId) -> Refusal {
    let shard = builder.shard.id;
    let message =
        format!("the part of operation {id} in shard {shard} is of a later release: it is left alone");
    Refusal::new(Reason::Unimplemented, message)
}

/// A part is stored, and others of its tenant that ended long ago are forgotten.
fn write(builder: &mut BatchBuilder<'_>, row: OperationRow) {
    let outdated = builder.shard.upkeep.operations.outdated(&row.spec.namespace, builder.moment.now);
    let deletes = &mut builder.batch.operation_deletes;
    for id in outdated.into_iter().filter(|id| *id != row.spec.id) {
        if !deletes.contains(&id) && !builder.batch.operations.iter().any(|other| other.spec.id == id) {
            deletes.push(id);
        }
    }
    deletes.retain(|id| *id != row.spec.id);
    builder.batch.operations.push(row);
}

/// The parts that have not ended, stored or in this batch.
fn open_beside(builder: &BatchBuilder<'_>, spec: &OperationSpec) -> OpenParts {
    OpenParts::beside(spec, builder.shard.upkeep.operations.open().chain(&builder.batch.operations))
}

/// It begins in its home shard. Repeated, it is left as it is.
fn begin(builder: &mut BatchBuilder<'_>, spec: &OperationSpec) -> Result<OperationRow, Refusal> {
    if let Some(part) = builder.shard.upkeep.operations.get(spec.id) {
        let row = &part.row;
        if row.spec.namespace != spec.namespace || !row.spec.is_same_request(spec) {
            let message = "the request id was used for another operation";
            return Err(Refusal::new(Reason::RequestIdReused, message));
        }
        return Ok(row.clone());
    }
    let open = open_beside(builder, spec);
    let full = (open.namespace >= OPEN_TENANT_MAX)
        .then(|| format!("{OPEN_TENANT_MAX} operations of the namespace"))
        .or_else(|| open.full(spec, &HOME_BOUNDS));
    let Some(full) = full else { return Ok(new_part(builder, spec)) };
    let message = format!("{full} have not ended, which is the limit");
    Err(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER))
}

/// The shard does its part as the home shard wishes it. What is older than what it knows changes nothing.
fn follow(builder: &mut BatchBuilder<'_>, spec: &OperationSpec) -> Result<OperationRow, Refusal> {
    let Some(part) = builder.shard.upkeep.operations.get(spec.id) else {
        let open = open_beside(builder, spec);
        if let Some(full) = open.full(spec, &SHARD_BOUNDS) {
            let message = format!("{full} have not ended in this shard, which is the limit");
            return Err(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER));
        }
        return Ok(new_part(builder, spec));
    };
    let row = part.row.clone();
    if row.spec.namespace != spec.namespace || row.spec.wish.version >= spec.wish.version {
        return Ok(row);
    }
    Ok(wished(builder, row, spec.wish))
}

/// The home shard wishes it otherwise.
fn change_one(
    builder: &BatchBuilder<'_>,
    id: OperationId,
    namespace: &str,
    change: OperationChange,
) -> Result<OperationRow, Refusal> {
    let part = builder.shard.upkeep.operations.get(id).filter(|part| part.row.spec.namespace == namespace);
    let Some(part) = part.filter(|part| part.row.spec.home == builder.shard.id) else {
        return Err(Refusal::new(Reason::OperationNotFound, format!("there is no operation {id}")));
    };
    let row = part.row.clone();
    let wish = row.spec.wish;
    let wish = match change {
        OperationChange::Cancel if wish.cancelled => return Ok(row),
        OperationChange::Cancel => OperationWish { cancelled: true, ..wish },
        OperationChange::Rate(rate) => OperationWish { rate, ..wish },
        OperationChange::Active(active) => OperationWish { active, ..wish },
    };
    Ok(wished(builder, row, OperationWish { version: wish.version + 1, ..wish }))
}

fn wished(builder: &BatchBuilder<'_>, mut row: OperationRow, wish: OperationWish) -> OperationRow {
    row.spec.wish = wish;
    if wish.cancelled && row.progress.ended_at.is_none() {
        row.progress.ended_at = Some(builder.moment.now);
    }
    row
}

/// The shard's part begins now. What is stored later is none of its business.
fn new_part(builder: &BatchBuilder<'_>, spec: &OperationSpec) -> OperationRow {
    let now = builder.moment.now;
    let as_of = (builder.shard.tenure.marks.seq, now, builder.batch.number - 1);
    let progress = OperationProgress {
        ended_at: spec.wish.cancelled.then_some(now),
        estimated: estimated(builder, spec),
        ..OperationProgress::begin(spec.kind, as_of)
    };
    OperationRow { spec: spec.clone(), progress }
}

/// About how many items it is to look at: those of the topic, as of now.
fn estimated(builder: &BatchBuilder<'_>, spec: &OperationSpec) -> u64 {
    let shard = &builder.shard;
    let totals = shard.topic_id(&spec.name()).and_then(|id| shard.totals(id));
    let TopicTotals { ready, leased, scheduled, dead } = totals.unwrap_or_default();
    let waiting = ready + leased + scheduled;
    match spec.kind {
        OperationKind::Purge | OperationKind::Update => waiting,
        OperationKind::Cancel => waiting + dead,
        OperationKind::DeleteDead | OperationKind::Redrive => dead,
        OperationKind::ResetLeases => leased,
    }
}
