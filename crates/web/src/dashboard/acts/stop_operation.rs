//! Stops an operation. What it has done stays.

use axum::response::Response;
use forebay_proto::v1::CancelOperationRequest;

use super::super::{act, asked::PageRequest, notice::told, trouble::Trouble};

/// Serves `POST /stop-operation`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(stop(&asked).await)
}

async fn stop(asked: &PageRequest) -> Result<String, Trouble> {
    let (namespace, id) = (asked.fields.get("ns"), asked.fields.get("id"));
    let request = CancelOperationRequest { namespace: namespace.to_owned(), operation_id: id.to_owned() };
    asked.ask(request).await?;
    Ok(told("operation", &[("ns", namespace), ("id", id)], "stopping"))
}
