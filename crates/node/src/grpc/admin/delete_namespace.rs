//! DeleteNamespace.

use std::collections::BTreeSet;

use forebay_access::Identity;
use forebay_engine::TopicScope;
use forebay_proto::v1;
use forebay_types::{Namespace, Reason, Refusal};

use super::{
    context::{Admin, REASON_BYTES},
    delete_topic::{has_items, not_asked, not_empty},
    namespaces,
    pauses::book,
    remove_items::Removal,
    topic_walk::{SCAN_BYTES, TopicWalk},
};
use crate::{
    grpc::{admission::Call, fields},
    peers::wire::topics::add_counts,
};

/// So many topics at most are emptied at once: each takes an operation.
const WITH_ITEMS_MAX: usize = 100;

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
    let Found { topics, with_items, counts } = look(admin, call, &namespace, request.force).await?;
    let mut found = v1::Namespace {
        namespace: namespace.to_string(),
        topic_count: topics,
        counts,
        ..v1::Namespace::default()
    };
    namespaces::add_wanted(admin, &namespace, std::slice::from_mut(&mut found)).await?;
    let is_there = topics > 0 || found.counts.is_some() || namespaces::is_named(admin, &namespace).await?;
    let mut operation_ids = Vec::new();
    if !request.dry_run {
        let removal =
            Removal { namespace: &namespace, reason: &request.reason, request_id: &request.request_id };
        for topic in &with_items {
            operation_ids.push(removal.begin(admin, call, caller, topic).await?);
        }
    }
    let had_any = if request.dry_run { false } else { book.remove(&namespace, None).await? };
    let uncounted_shards = match request.dry_run {
        true => Vec::new(),
        false => admin.gather.forget_counts(&namespace).await?,
    };
    if !is_there && !had_any {
        return Err(namespaces::not_found(&namespace));
    }
    if had_any {
        let (namespace, who, reason) = (&*namespace, &*caller.id, &request.reason);
        tracing::info!(namespace, who, reason, "settings and pauses of a namespace were removed");
    }
    Ok(v1::DeleteNamespaceResponse { namespace: Some(found), operation_ids, uncounted_shards })
}

/// What was found of a namespace.
struct Found {
    /// How many topics memory knows.
    topics: u64,
    /// Those that have items.
    with_items: Vec<String>,
    /// What was counted so far.
    counts: Option<v1::Counts>,
}

/// Looks at its topics until one has an item. With `force` only too many of them are refused.
async fn look(admin: &Admin, call: &Call, namespace: &Namespace, force: bool) -> Result<Found, Refusal> {
    let _walk = admin.gather.admit_walk(namespace)?;
    let _look = admin.gather.admit(namespace, SCAN_BYTES)?;
    let scope = TopicScope { namespace: Some(namespace.clone()), prefix: String::new() };
    let mut walk = TopicWalk::of_namespaces(scope, None);
    let (mut topics, mut with_items, mut counts) = (0, Vec::new(), None);
    while let Some(topic) = walk.next(admin).await? {
        add_counts(&mut counts, topic.counts.as_ref());
        if topic.topic.is_empty() {
            continue;
        }
        if has_items(&topic) {
            if !force {
                return Err(not_empty("namespace", &topic));
            }
            if with_items.len() == WITH_ITEMS_MAX {
                let message = format!(
                    "more than {WITH_ITEMS_MAX} topics of the namespace have items: delete some of them first"
                );
                return Err(Refusal::new(Reason::NotEmpty, message));
            }
            with_items.push(topic.topic);
        }
        topics += 1;
        if tokio::time::Instant::now() >= call.deadline() {
            let message = format!("{topics} topics were looked at, and there are more");
            return Err(Refusal::new(Reason::DeadlineExceeded, message));
        }
    }
    let incomplete: BTreeSet<u32> = walk.incomplete;
    match incomplete.is_empty() {
        true => Ok(Found { topics, with_items, counts }),
        false => Err(not_asked(&incomplete.into_iter().collect::<Vec<_>>())),
    }
}
