//! `ExtendLease`: checks the durations, has the engine extend the leases, answers each.

use forebay_edge::{
    admission::Call,
    rpc::{
        fields::{self, Path},
        members::Members,
        slices::make_each,
        status::{self, RefusalFields},
    },
};
use forebay_engine::ExtendOf;
use forebay_proto::{
    time::to_timestamp,
    v1::{ExtendLeaseRequest, ExtendLeaseResponse, ExtendLeaseResult, LeaseExtension},
};
use forebay_types::{Limits, Refusal, Timestamp};

use super::queue::Queue;

/// Serves the call.
pub async fn extend_lease(
    queue: &Queue,
    call: &Call,
    request: ExtendLeaseRequest,
) -> Result<ExtendLeaseResponse, Refusal> {
    let limits = &queue.rules.limits;
    let namespace = queue.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    fields::members("extensions", request.extensions.len(), limits.members)?;
    call.reserve_answers(request.extensions.len())?;
    let extensions = request.extensions.into_iter().enumerate();
    let checked =
        make_each(extensions, |(index, extension)| check(limits, &namespace, index, &extension)).await;
    let (extensions, results) = checked.into_iter().collect::<Members<_>>().split();
    let answers = match extensions.is_empty() {
        true => Vec::new(),
        false => call.in_time(queue.front.extend_lease(namespace, extensions)).await?,
    };
    let answers = results.merge("extensions", answers)?;
    Ok(ExtendLeaseResponse { results: make_each(answers, result).await })
}

fn check(
    limits: &Limits,
    namespace: &str,
    index: usize,
    extension: &LeaseExtension,
) -> Result<ExtendOf, Refusal> {
    let path = |field: &'static str| Path::of_member("extensions", index, field);
    let receipt = fields::receipt(namespace, path("receipt"), &extension.receipt)?;
    let lease = fields::lease(limits, path("lease_duration"), extension.lease_duration.as_ref())?;
    Ok(ExtendOf { receipt, lease })
}

fn result(answer: Result<Timestamp, Refusal>) -> ExtendLeaseResult {
    match answer {
        Ok(end) => ExtendLeaseResult { lease_expires_at: Some(to_timestamp(end)), ..Default::default() },
        Err(refusal) => {
            let RefusalFields { error, reason, retry_after } = status::of_result(&refusal);
            ExtendLeaseResult { error, reason, retry_after, ..Default::default() }
        }
    }
}
