//! Changes the settings of a namespace. The form has all of them, and the version that they replace: if
//! somebody else has changed them meanwhile, nothing is done.

use axum::response::Response;
use forebay_proto::v1::PutNamespaceRequest;

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    settings::{settings, version},
};

/// Serves `POST /put-namespace`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(put(&asked).await)
}

async fn put(asked: &PageRequest) -> Result<String, Trouble> {
    let request = PutNamespaceRequest {
        namespace: asked.fields.get("ns").to_owned(),
        settings: Some(settings(&asked.fields)?),
        version: version(&asked.fields)?,
        reason: asked.fields.get("reason").to_owned(),
        ..PutNamespaceRequest::default()
    };
    let namespace = request.namespace.clone();
    asked.ask(request).await?;
    Ok(told("namespace", &[("ns", &namespace)], "settings"))
}
