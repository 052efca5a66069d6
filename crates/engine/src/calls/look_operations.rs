//! The parts of operations in the shards that this node owns for certain, for operators.

use forebay_store::{
    OperationFailure, OperationId, OperationKind, OperationPart, OperationProgress, OperationRow,
    OperationWish,
};
use forebay_types::{Namespace, Seq, ShardId, Timestamp};

use crate::{api::OperationsSnapshot, core::Core, messages::reply::Reply};

/// The parts of one operation, or of all of a tenant. Without a tenant those whose home is here, so that
/// somebody sees to the other shards.
pub(crate) fn serve(
    core: &Core,
    namespace: Option<&Namespace>,
    id: Option<OperationId>,
    reply: Reply<OperationsSnapshot>,
) {
    let at = core.time.monotonic();
    let mut seen = OperationsSnapshot::default();
    for (_, slot) in core.slots.entries() {
        let Some(shard) = slot.owned().filter(|shard| shard.is_trusted(at)) else { continue };
        seen.shards.push(slot.id);
        let rows: Vec<_> = match id {
            Some(id) => shard.operation(id).into_iter().collect(),
            None => shard.operations().collect(),
        };
        let rows = rows.into_iter().filter(|row| match namespace {
            Some(own) => **own == *row.spec.namespace,
            None => row.spec.home == slot.id,
        });
        if let Some(id) = id.filter(|id| shard.has_unreadable(*id)) {
            seen.parts.push(unreadable(slot.id, id));
        }
        seen.parts.extend(rows.map(|OperationRow { spec, progress }| {
            let (wish, progress, shard) = (spec.wish, *progress, slot.id);
            let said = id.is_some() || spec.home == shard;
            OperationPart { shard, id: spec.id, wish, progress, spec: said.then(|| Box::new(spec.clone())) }
        }));
    }
    reply.send(Ok(seen));
}

/// A part that this program can't read. Whose it is is known by the other parts alone.
fn unreadable(shard: ShardId, id: OperationId) -> OperationPart {
    let progress = OperationProgress {
        ended_at: Some(Timestamp::MIN),
        failure: Some(OperationFailure::Unreadable),
        ..OperationProgress::begin(OperationKind::Purge, (Seq(0), Timestamp::MIN, 0))
    };
    let wish = OperationWish { version: 0, rate: 0, active: 0, cancelled: false };
    OperationPart { shard, id, wish, progress, spec: None }
}
