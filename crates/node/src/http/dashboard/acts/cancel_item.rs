//! Cancels one item.

use axum::response::Response;
use forebay_proto::v1::CancelItemsRequest;
use tonic::{Code, Status};

use super::{
    super::{act, asked::Asked, notice::told, trouble::Trouble},
    pause::page_of,
};

/// Serves `POST /cancel-item`.
pub async fn act(asked: Asked) -> Response {
    act::lead(cancel(&asked).await)
}

async fn cancel(asked: &Asked) -> Result<String, Trouble> {
    let (namespace, topic) = (asked.fields.get("ns"), asked.fields.get("name"));
    let request = CancelItemsRequest {
        namespace: namespace.to_owned(),
        item_ids: vec![asked.fields.get("id").to_owned()],
        reason: asked.fields.get("reason").to_owned(),
        dry_run: false,
        request_id: String::new(),
    };
    let answer = asked.admin()?.cancel_items(asked.request(request)).await?.into_inner();
    if let Some(error) = answer.results.into_iter().find_map(|result| result.error) {
        return Err(Status::new(Code::from(error.code), error.message).into());
    }
    Ok(told(page_of(topic), &[("ns", namespace), ("name", topic)], "cancelled"))
}
