//! PutTopic.

use forebay_edge::rpc::fields;
use forebay_proto::v1;
use forebay_types::{Refusal, TopicName, cut_text};

use super::{
    context::{Admin, REASON_BYTES},
    ctx::Ctx,
    settings,
};

/// Serves PutTopic.
pub async fn put(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::PutTopicRequest,
) -> Result<v1::PutTopicResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let topic = fields::topic_or_pattern(&admin.rules.limits, "topic", &request.topic)?;
    cut_text(&mut request.reason, REASON_BYTES);
    let wanted = settings::of_topic(&admin.rules.limits, request.settings.as_ref())?;
    let name = TopicName { namespace, topic };
    let row =
        admin.policies.put_settings(&ctx.caller, &name, request.version, wanted, request.dry_run).await?;
    if !request.dry_run {
        let (namespace, topic, who, reason) =
            (&*name.namespace, &*name.topic, &*ctx.caller.id, &request.reason);
        tracing::info!(namespace, topic, who, reason, version = row.version, "settings of a topic were put");
    }
    let effective = settings::effective(admin, &name, row.settings).await?;
    Ok(v1::PutTopicResponse {
        settings: Some(settings::topic_message(&row.settings)),
        version: row.version,
        effective_settings: Some(settings::topic_message(&effective)),
    })
}
