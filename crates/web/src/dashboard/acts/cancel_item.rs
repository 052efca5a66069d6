//! Cancels an item, or those that were chosen from a list.

use axum::response::Response;
use forebay_proto::v1::CancelItemsRequest;
use tonic::{Code, Status};

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    pause::page_of,
};

/// Serves `POST /cancel-item`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(cancel(&asked).await)
}

async fn cancel(asked: &PageRequest) -> Result<String, Trouble> {
    let (namespace, topic) = (asked.fields.get("ns"), asked.fields.get("name"));
    let ids = asked.fields.all("id");
    let request = CancelItemsRequest {
        namespace: namespace.to_owned(),
        item_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        reason: asked.fields.get("reason").to_owned(),
        dry_run: false,
    };
    let answer = asked.ask(request).await?;
    let failed: Vec<_> = answer.results.iter().filter_map(|result| result.error.as_ref()).collect();
    if let Some(error) = failed.first() {
        let message = match ids.len() {
            1 => error.message.clone(),
            all => format!("{} of {all} items were cancelled. {}", all - failed.len(), error.message),
        };
        return Err(Status::new(Code::from(error.code), message).into());
    }
    let done = if ids.len() == 1 { "cancelled" } else { "cancelled-items" };
    Ok(told(page_of(topic), &[("ns", namespace), ("name", topic)], done))
}
