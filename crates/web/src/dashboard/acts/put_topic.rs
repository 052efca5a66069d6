//! Changes the settings of a topic. The form has all of them, and the version that they replace: if somebody
//! else has changed them meanwhile, nothing is done.

use axum::response::Response;
use forebay_proto::v1::PutTopicRequest;

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    settings::{settings, version},
};

/// Serves `POST /put-topic`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(put(&asked).await)
}

async fn put(asked: &PageRequest) -> Result<String, Trouble> {
    let settings = settings(&asked.fields)?.for_topic();
    let request = PutTopicRequest {
        namespace: asked.fields.get("ns").to_owned(),
        topic: asked.fields.get("name").to_owned(),
        settings: Some(settings),
        version: version(&asked.fields)?,
        reason: asked.fields.get("reason").to_owned(),
        ..PutTopicRequest::default()
    };
    let (namespace, topic) = (request.namespace.clone(), request.topic.clone());
    asked.ask(request).await?;
    Ok(told("topic", &[("ns", &namespace), ("name", &topic), ("tab", "settings")], "settings"))
}
