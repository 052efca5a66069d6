//! Serves the calls that other nodes pass on.

use forebay_edge::traces::note_items;
use forebay_engine::Engine;
use forebay_proto::peer;
use forebay_types::Refusal;
use tonic::Status;

use super::wire::{self, MalformedMessage};

/// Stores items in a shard of this node.
pub async fn enqueue(
    engine: &Engine,
    request: peer::EnqueueRequest,
) -> Result<peer::EnqueueResponse, Status> {
    let call = wire::enqueue_call(request).map_err(refused)?;
    let count = call.items.len();
    let answers = members(engine.enqueue(call).await, count);
    note_items(answers.iter().flatten().map(|stored| stored.id.shard));
    Ok(wire::enqueue_response(answers))
}

/// Ends deliveries.
pub async fn ack(engine: &Engine, request: peer::AckRequest) -> peer::SettleResponse {
    let (namespace, acks) = wire::acks(request);
    let count = acks.len();
    wire::settle_response(members(engine.ack(namespace, acks, None).await, count))
}

/// Gives items back.
pub async fn nack(engine: &Engine, request: peer::NackRequest) -> Result<peer::SettleResponse, Status> {
    let (namespace, nacks) = wire::nacks(request).map_err(refused)?;
    let count = nacks.len();
    Ok(wire::settle_response(members(engine.nack(namespace, nacks, None).await, count)))
}

/// Moves the ends of leases.
pub async fn extend_lease(
    engine: &Engine,
    request: peer::ExtendLeaseRequest,
) -> Result<peer::ExtendLeaseResponse, Status> {
    let (namespace, extensions) = wire::extensions(request).map_err(refused)?;
    let count = extensions.len();
    Ok(wire::extend_response(members(engine.extend_lease(namespace, extensions, None).await, count)))
}

/// Leases items in shards of this node.
pub async fn lease_items(
    engine: &Engine,
    request: peer::LeaseItemsRequest,
) -> Result<peer::LeaseItemsResponse, Status> {
    let call = wire::fetch_call(request).map_err(refused)?;
    let answer = engine.lease_items(call).await;
    if let Ok(fetched) = &answer {
        note_items(fetched.items.iter().map(|item| item.id.shard));
    }
    Ok(wire::fetch_response(answer))
}

/// The refusal of a whole call is that of each member: the client's call may have members elsewhere.
fn members<A>(answers: Result<Vec<Result<A, Refusal>>, Refusal>, count: usize) -> Vec<Result<A, Refusal>> {
    answers.unwrap_or_else(|refusal| (0..count).map(|_| Err(refusal.clone())).collect())
}

fn refused(malformed: MalformedMessage) -> Status {
    Status::invalid_argument(malformed.to_string())
}
