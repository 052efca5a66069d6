//! DeleteTopic.

use forebay_edge::{audit::AuditNote, rpc::fields};
use forebay_engine::RETRY_AFTER;
use forebay_proto::v1;
use forebay_types::{Reason, Refusal, TopicName, cut_text};

use super::{
    context::{Admin, REASON_BYTES},
    ctx::Ctx,
    remove_items::Removal,
    topics,
};

/// Serves DeleteTopic. Between the look and the removal items may come: they stay, and have no settings.
pub async fn delete(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::DeleteTopicRequest,
) -> Result<v1::DeleteTopicResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let topic = fields::topic_or_pattern(&admin.rules.limits, "topic", &request.topic)?;
    cut_text(&mut request.reason, REASON_BYTES);
    let name = TopicName { namespace, topic };
    let book = &admin.policies;
    let found = topics::look(admin, &name).await?;
    let topic = found.topic.unwrap_or_default();
    let has_items = has_items(&topic);
    if has_items && !request.force {
        return Err(not_empty("topic", &topic));
    }
    if !found.incomplete_shards.is_empty() {
        return Err(not_asked(&found.incomplete_shards));
    }
    let is_there = topic != v1::Topic::default();
    let mut operation_id = String::new();
    if has_items && !request.dry_run {
        let removal = Removal { namespace: &name.namespace, reason: &request.reason, request_id: "" };
        operation_id = removal.begin(admin, ctx, &name.topic).await?;
    }
    let had_any = match request.dry_run {
        true => false,
        false => book.remove(&name.namespace, Some(&name.topic)).await?,
    };
    if had_any {
        let (namespace, topic, who, reason) =
            (&*name.namespace, &*name.topic, &*ctx.caller.id, &request.reason);
        tracing::info!(namespace, topic, who, reason, "settings and pauses of a topic were removed");
    }
    // Whoever has lost the answer repeats the call, which finds nothing.
    let topic = (is_there || had_any).then_some(topic);
    ctx.note(AuditNote { operation_id: operation_id.clone(), ..AuditNote::default() });
    Ok(v1::DeleteTopicResponse { topic, operation_id })
}

/// Whether a topic has items, dead letters included.
pub(crate) fn has_items(topic: &v1::Topic) -> bool {
    topic.ready_count + topic.leased_count + topic.scheduled_count + topic.dead_count > 0
}

/// A topic, or a namespace with a topic, that has items.
pub(crate) fn not_empty(what: &str, topic: &v1::Topic) -> Refusal {
    let v1::Topic { namespace, topic, ready_count, leased_count, scheduled_count, dead_count, .. } = topic;
    let whose = match what {
        "topic" => format!("topic {topic} has"),
        _ => format!("namespace {namespace} has items: its topic {topic} has"),
    };
    let message = format!(
        "{whose} {ready_count} ready, {leased_count} leased and {scheduled_count} scheduled items and \
         {dead_count} dead letters; remove them first, with `forebay topic purge --leased` and \
         `forebay dead-letter delete`, or delete it with `force`"
    );
    Refusal::new(Reason::NotEmpty, message)
}

/// Shards could not be asked whether they have items.
pub fn not_asked(shards: &[u32]) -> Refusal {
    let message = format!("whether it has items is not known: shards {shards:?} could not be asked");
    Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER)
}
