//! `Ack`: decodes the receipts, has the engine end the deliveries, answers each.

use forebay_edge::{
    admission::Call,
    rpc::{
        fields::{self, Path},
        members::Members,
        slices::make_each,
        status,
    },
};
use forebay_proto::v1::{Ack, AckRequest, AckResponse};
use forebay_types::Refusal;

use super::queue::Queue;

/// Serves the call.
pub async fn ack(queue: &Queue, call: &Call, request: AckRequest) -> Result<AckResponse, Refusal> {
    let namespace = queue.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    fields::members("acks", request.acks.len(), queue.rules.limits.members)?;
    call.reserve_answers(request.acks.len())?;
    let check = |(index, ack): (usize, &Ack)| {
        fields::receipt(&namespace, Path::of_member("acks", index, "receipt"), &ack.receipt)
    };
    let checked = make_each(request.acks.iter().enumerate(), check).await;
    let (acks, results) = checked.into_iter().collect::<Members<_>>().split();
    let answers = match acks.is_empty() {
        true => Vec::new(),
        false => call.in_time(queue.front.ack(namespace, acks)).await?,
    };
    let answers = results.merge("acks", answers)?;
    Ok(AckResponse { results: make_each(answers, status::of_settled).await })
}
