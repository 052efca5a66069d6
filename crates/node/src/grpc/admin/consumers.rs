//! ListConsumers.

use forebay_proto::v1;
use forebay_types::Refusal;
use prost::Message as _;

use super::context::Admin;
use crate::grpc::admission::Call;

/// What the consumers of one node may take.
const CONSUMERS_BYTES: usize = 2 << 20;

/// Serves ListConsumers.
pub async fn list(
    admin: &Admin,
    call: &Call,
    request: v1::ListConsumersRequest,
) -> Result<v1::ListConsumersResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    let _look = admin.gather.admit(&namespace, CONSUMERS_BYTES)?;
    let found = admin.gather.consumers(&namespace).await?;
    call.reserve_answer(found.encoded_len())?;
    Ok(found)
}
