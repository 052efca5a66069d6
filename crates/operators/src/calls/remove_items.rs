//! Items go with the topic that is deleted: an operation removes them, and goes on by itself.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use forebay_edge::rpc::fields;
use forebay_proto::v1;
use forebay_types::{Namespace, Refusal};
use sha2::{Digest as _, Sha256};

use super::{context::Admin, ctx::Ctx, start_operation};

/// Removal of items, as a deletion asks for it.
pub(crate) struct Removal<'a> {
    /// Whose they are.
    pub namespace: &'a Namespace,
    /// Why.
    pub reason: &'a str,
    /// Names the operations. Empty: each call begins others.
    pub request_id: &'a str,
}

impl Removal<'_> {
    /// Begins to remove all items of a topic. Returns the operation.
    pub async fn begin(&self, admin: &Admin, ctx: &Ctx, topic: &str) -> Result<String, Refusal> {
        let request_id = fields::key(&admin.rules.limits, "request_id", self.request_id.to_owned())?;
        // One for each topic, and as short for any.
        let request_id = request_id.map(|id| {
            let hash = Sha256::new_with_prefix(id).chain_update(b"\0").chain_update(topic);
            URL_SAFE_NO_PAD.encode(hash.finalize())
        });
        let request = v1::StartOperationRequest {
            namespace: self.namespace.to_string(),
            kind: v1::OperationKind::Cancel.into(),
            topic: topic.to_owned(),
            reason: self.reason.to_owned(),
            request_id: request_id.unwrap_or_default(),
            ..v1::StartOperationRequest::default()
        };
        let begun = start_operation::run(admin, ctx, self.namespace.clone(), request).await?;
        Ok(begun.operation.unwrap_or_default().id)
    }
}
