//! `Ack`: reads the receipts, has the engine end the deliveries, answers each.

use forebay_proto::v1::{AckRequest, AckResponse};
use forebay_types::Refusal;

use super::{
    Queue, answered,
    fields::{self, Path},
    members::Members,
    settle_result,
};

/// Serves the call.
pub async fn ack(queue: &Queue, request: AckRequest) -> Result<AckResponse, Refusal> {
    let namespace = queue.rules.namespace(&request.namespace)?;
    fields::members("acks", request.acks.len(), queue.rules.limits.members)?;
    let checked = request.acks.iter().enumerate().map(|(index, ack)| {
        fields::receipt(&namespace, Path::of_member("acks", index, "receipt"), &ack.receipt)
    });
    let (acks, places) = checked.collect::<Members<_>>().split();
    let answers = match acks.is_empty() {
        true => Vec::new(),
        false => queue.engine.ack(acks).await?,
    };
    let answers = answered(places.fill("acks", answers))?;
    Ok(AckResponse { results: answers.into_iter().map(settle_result).collect() })
}
