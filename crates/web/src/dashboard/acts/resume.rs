//! Ends the pauses of a topic, or of a whole namespace.

use axum::response::Response;
use forebay_proto::v1::ResumeTopicRequest;

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    pause::{page_of, sides},
};

/// Serves `POST /resume`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(resume(&asked).await)
}

async fn resume(asked: &PageRequest) -> Result<String, Trouble> {
    let (namespace, topic) = (asked.fields.get("ns"), asked.fields.get("name"));
    let (sides, _) = sides(asked.fields.get("side"))?;
    let request = ResumeTopicRequest {
        namespace: namespace.to_owned(),
        topic: topic.to_owned(),
        sides: sides.into_iter().map(i32::from).collect(),
        reason: asked.fields.get("reason").to_owned(),
        dry_run: false,
    };
    asked.ask(request).await?;
    Ok(told(page_of(topic), &[("ns", namespace), ("name", topic)], "resumed"))
}
