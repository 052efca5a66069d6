//! Ends the leases that a consumer has of a topic. An operation does it, which has a page.

use axum::response::Response;
use forebay_proto::v1::{OperationKind, StartOperationRequest};
use forebay_types::filter::quoted;

use super::super::{act, asked::PageRequest, links::link, trouble::Trouble};

/// Serves `POST /release-leases`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(release(&asked).await)
}

async fn release(asked: &PageRequest) -> Result<String, Trouble> {
    let (namespace, topic) = (asked.fields.get("ns"), asked.fields.get("name"));
    if topic.is_empty() {
        return Err(Trouble::field("name", "must name a topic"));
    }
    let request = StartOperationRequest {
        namespace: namespace.to_owned(),
        kind: OperationKind::ResetLeases.into(),
        topic: topic.to_owned(),
        // Consumers without a name have an empty one, and a form leaves that out.
        filter: format!("consumer = {}", quoted(asked.fields.get("consumer"))),
        reason: asked.fields.get("reason").to_owned(),
        ..StartOperationRequest::default()
    };
    let answer = asked.ask(request).await?;
    let id = answer.operation.map(|operation| operation.id).unwrap_or_default();
    Ok(link("operation", &[("ns", namespace), ("id", &id)]))
}
