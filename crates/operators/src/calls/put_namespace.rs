//! PutNamespace.

use forebay_proto::v1;
use forebay_types::{Refusal, TopicName, cut_text};

use super::{
    context::{Admin, REASON_BYTES},
    ctx::Ctx,
    settings,
};

/// Serves PutNamespace.
pub async fn put(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::PutNamespaceRequest,
) -> Result<v1::PutNamespaceResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    cut_text(&mut request.reason, REASON_BYTES);
    let limits = &admin.rules.limits;
    let wanted = settings::of_namespace(&admin.settings, limits, request.settings.as_ref())?;
    let name = TopicName::new(namespace, "");
    let row =
        admin.policies.put_settings(&ctx.caller, &name, request.version, wanted, request.dry_run).await?;
    if !request.dry_run {
        let (namespace, who, reason) = (&*name.namespace, &*ctx.caller.id, &request.reason);
        tracing::info!(namespace, who, reason, version = row.version, "settings of a namespace were put");
    }
    let effective = settings::effective(admin, &name, row.settings).await?;
    Ok(v1::PutNamespaceResponse {
        settings: Some(settings::namespace_message(&row.settings)),
        version: row.version,
        effective_settings: Some(settings::namespace_message(&effective)),
    })
}
