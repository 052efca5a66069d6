//! Gives an operation another rate.

use axum::response::Response;
use forebay_proto::v1::SetOperationRateRequest;

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    operate::number,
};

/// Serves `POST /set-rate`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(set(&asked).await)
}

async fn set(asked: &PageRequest) -> Result<String, Trouble> {
    let (namespace, id) = (asked.fields.get("ns"), asked.fields.get("id"));
    let rate = number(&asked.fields, "rate")?.ok_or_else(|| Trouble::field("rate", "must be given"))?;
    let request = SetOperationRateRequest {
        namespace: namespace.to_owned(),
        operation_id: id.to_owned(),
        rate_per_second: rate,
    };
    asked.ask(request).await?;
    Ok(told("operation", &[("ns", namespace), ("id", id)], "rate"))
}
