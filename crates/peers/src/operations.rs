//! Operations: asks other nodes for their shards' parts, and answers them.

use std::time::Duration;

use bytes::Bytes;
use forebay_engine::{Engine, ItemCount, OperationsSnapshot, OrderResult};
use forebay_proto::peer;
use forebay_store::{
    OperationId, OperationOrder, OperationSpec, pack_operation, pack_operation_part, pack_operation_row,
    unpack_operation, unpack_operation_part, unpack_operation_row,
};
use forebay_types::{Namespace, Seq, ShardId};
use tonic::Status;

use super::{channels::Client, links::PeerLinks, wire::refusal};
use crate::ask::{limited, refused};

/// The longest that another node may have a count take.
const COUNT_MS_MAX: u32 = 8_000;

impl PeerLinks {
    /// Asks the shards of another node for a part of an operation. `None`: no answer came.
    pub async fn order_operation(
        &self,
        address: &str,
        order: &OperationOrder,
        only: Option<ShardId>,
    ) -> Option<Vec<OrderResult>> {
        let request =
            peer::OrderOperationRequest { order: pack_operation(order).into(), shard: only.map(|id| id.0) };
        let caller = order.namespace();
        let ask = async |mut client: Client| client.order_operation(limited(request)).await;
        let answer = self.look(address, &caller, ask).await?;
        Some(answer.answers.into_iter().filter_map(ordered).collect())
    }

    /// Looks at parts of operations in another node's shards. `None`: no answer came.
    pub async fn list_operations(
        &self,
        address: &str,
        namespace: &Namespace,
        id: Option<OperationId>,
    ) -> Option<OperationsSnapshot> {
        let id = id.map(|id| id.0.to_vec()).unwrap_or_default().into();
        let request = peer::ListOperationsRequest { namespace: namespace.to_string(), id };
        let ask = async |mut client: Client| client.list_operations(limited(request)).await;
        let answer = self.look(address, namespace, ask).await?;
        let parts = answer.parts.iter().filter_map(|part| unpack_operation_part(part)).collect();
        Some(OperationsSnapshot { parts, shards: answer.shards.into_iter().map(ShardId).collect() })
    }

    /// Counts what an operation would change in another node's shards. `None`: no answer came.
    pub async fn count_items(
        &self,
        address: &str,
        spec: &OperationSpec,
        time: Duration,
    ) -> Option<Vec<ItemCount>> {
        let time_ms = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let request = peer::CountItemsRequest { spec: pack_operation(spec).into(), time_ms };
        let caller: Namespace = spec.namespace.as_str().into();
        let ask = async |mut client: Client| client.count_items(limited(request)).await;
        let answer = self.look(address, &caller, ask).await?;
        let count = |count: peer::ShardCount| ItemCount {
            shard: ShardId(count.shard),
            matched: count.matched,
            scanned: count.scanned,
            samples: count.samples.into_iter().map(Seq).collect(),
            exact: count.exact,
        };
        Some(answer.counts.into_iter().map(count).collect())
    }
}

/// Answer of a shard. `None`: it was not written by this program.
fn ordered(answer: peer::OrderAnswer) -> Option<OrderResult> {
    let shard = ShardId(answer.shard);
    match answer.refusal {
        Some(why) => Some((shard, Err(refusal::refusal(why)))),
        None => Some((shard, Ok(unpack_operation_row(&answer.row)?))),
    }
}

/// Asks this node's shards for another node.
pub async fn order_operation(
    engine: &Engine,
    request: peer::OrderOperationRequest,
) -> Result<peer::OrderOperationResponse, Status> {
    let order: OperationOrder = unpack_operation(&request.order)
        .ok_or_else(|| Status::invalid_argument("the order is not readable"))?;
    let answers = engine.order(order, request.shard.map(ShardId)).await.map_err(refused)?;
    let answer = |(shard, result): OrderResult| match result {
        Ok(row) => peer::OrderAnswer { shard: shard.0, row: pack_operation_row(&row).into(), refusal: None },
        Err(why) => {
            let refusal = Some(refusal::message(why));
            peer::OrderAnswer { shard: shard.0, row: Bytes::new(), refusal }
        }
    };
    Ok(peer::OrderOperationResponse { answers: answers.into_iter().map(answer).collect() })
}

/// Looks at parts of operations for another node.
pub async fn list_operations(
    engine: &Engine,
    request: peer::ListOperationsRequest,
) -> Result<peer::ListOperationsResponse, Status> {
    let id = match <[u8; 16]>::try_from(request.id.as_ref()) {
        Ok(id) => Some(OperationId(id)),
        Err(_) if request.id.is_empty() => None,
        Err(_) => return Err(Status::invalid_argument("an operation's id has 16 bytes")),
    };
    let seen = engine.operations(Some(request.namespace.into()), id).await.map_err(refused)?;
    let parts = seen.parts.iter().map(|part| pack_operation_part(part).into()).collect();
    Ok(peer::ListOperationsResponse { parts, shards: seen.shards.into_iter().map(|id| id.0).collect() })
}

/// Counts for another node.
pub async fn count_items(
    engine: &Engine,
    request: peer::CountItemsRequest,
) -> Result<peer::CountItemsResponse, Status> {
    let spec: OperationSpec = unpack_operation(&request.spec)
        .ok_or_else(|| Status::invalid_argument("the operation is not readable"))?;
    let time = Duration::from_millis(request.time_ms.min(COUNT_MS_MAX).into());
    let counts = engine.count_items(&spec, time).await.map_err(refused)?;
    let count = |count: ItemCount| peer::ShardCount {
        shard: count.shard.0,
        matched: count.matched,
        scanned: count.scanned,
        samples: count.samples.into_iter().map(|seq| seq.0).collect(),
        exact: count.exact,
    };
    Ok(peer::CountItemsResponse { counts: counts.into_iter().map(count).collect() })
}
