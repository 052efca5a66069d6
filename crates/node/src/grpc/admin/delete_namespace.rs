//! DeleteNamespace.

use std::collections::BTreeSet;

use forebay_access::Identity;
use forebay_engine::TopicScope;
use forebay_proto::v1;
use forebay_types::{Namespace, Reason, Refusal};

use super::{
    context::{Admin, REASON_BYTES},
    delete_topic::{not_asked, not_empty},
    namespaces,
    pauses::book,
    topic_walk::{SCAN_BYTES, TopicWalk},
};
use crate::grpc::{admission::Call, fields};

/// Serves DeleteNamespace. Between the look and the removal items may come: they stay, and have no settings.
pub async fn delete(
    admin: &Admin,
    call: &Call,
    caller: &Identity,
    request: v1::DeleteNamespaceRequest,
) -> Result<v1::DeleteNamespaceResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    fields::bytes("reason", request.reason.len(), REASON_BYTES)?;
    let book = book(admin)?;
    let topics = check_empty(admin, call, &namespace).await?;
    let mut found =
        v1::Namespace { namespace: namespace.to_string(), topic_count: topics, ..Default::default() };
    namespaces::add_wanted(admin, &namespace, std::slice::from_mut(&mut found)).await?;
    let is_there = topics > 0 || namespaces::is_named(admin, &namespace).await?;
    let had_any = if request.dry_run { false } else { book.remove(&namespace, None).await? };
    if !is_there && !had_any {
        return Err(namespaces::not_found(&namespace));
    }
    if had_any {
        let (namespace, who, reason) = (&*namespace, &*caller.id, &request.reason);
        tracing::info!(namespace, who, reason, "settings and pauses of a namespace were removed");
    }
    Ok(v1::DeleteNamespaceResponse { namespace: Some(found) })
}

/// Looks at its topics until one has an item. Returns how many empty ones memory knows.
async fn check_empty(admin: &Admin, call: &Call, namespace: &Namespace) -> Result<u64, Refusal> {
    let _walk = admin.gather.admit_walk(namespace)?;
    let _look = admin.gather.admit(namespace, SCAN_BYTES)?;
    let scope = TopicScope { namespace: Some(namespace.clone()), prefix: String::new() };
    let mut walk = TopicWalk::new(scope, None);
    let mut topics = 0;
    while let Some(topic) = walk.next(admin).await? {
        if topic.ready_count + topic.leased_count + topic.scheduled_count + topic.dead_count > 0 {
            return Err(not_empty("namespace", &topic));
        }
        topics += 1;
        if tokio::time::Instant::now() >= call.deadline() {
            let message = format!("{topics} empty topics were looked at, and there are more");
            return Err(Refusal::new(Reason::DeadlineExceeded, message));
        }
    }
    let incomplete: BTreeSet<u32> = walk.incomplete;
    match incomplete.is_empty() {
        true => Ok(topics),
        false => Err(not_asked(&incomplete.into_iter().collect::<Vec<_>>())),
    }
}
