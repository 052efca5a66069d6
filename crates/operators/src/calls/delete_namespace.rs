//! DeleteNamespace.

use std::collections::BTreeSet;

use forebay_engine::TopicScope;
use forebay_peers::looks::topics::add_counts;
use forebay_proto::v1;
use forebay_types::{Namespace, Reason, Refusal, cut_text};

use super::{
    context::{Admin, REASON_BYTES},
    ctx::Ctx,
    delete_topic::{has_items, not_asked, not_empty},
    namespaces,
    remove_items::Removal,
    topic_walk::{SCAN_BYTES, TopicWalk},
};

/// Topics that one call empties at most: each takes an operation, of which a namespace may have few more
/// under way. Those of an earlier call are among them until they have ended.
const WITH_ITEMS_MAX: usize = 100;

/// Serves DeleteNamespace. Between the look and the removal items may come: they stay, and have no settings.
///
/// Where more topics have items, or not all operations can be begun, the call goes on: whoever repeats it
/// takes the next ones. Settings, pauses and counts go with the last call.
pub async fn delete(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::DeleteNamespaceRequest,
) -> Result<v1::DeleteNamespaceResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    cut_text(&mut request.reason, REASON_BYTES);
    let book = &admin.policies;
    let NamespaceFindings { topics, with_items, counts, mut goes_on } =
        look(admin, ctx, &namespace, request.force).await?;
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
            match removal.begin(admin, ctx, topic).await {
                Ok(id) => operation_ids.push(id),
                // No more may be under way now.
                Err(_) if !operation_ids.is_empty() => goes_on = true,
                Err(refusal) => return Err(refusal),
            }
            if goes_on && tokio::time::Instant::now() >= ctx.call.deadline() {
                break;
            }
        }
    }
    let is_last = !request.dry_run && !goes_on;
    let had_any = if is_last { book.remove(&namespace, None).await? } else { false };
    let uncounted_shards = match is_last {
        true => admin.gather.forget_counts(&namespace).await?,
        false => Vec::new(),
    };
    if had_any {
        let (namespace, who, reason) = (&*namespace, &*ctx.caller.id, &request.reason);
        tracing::info!(namespace, who, reason, "settings and pauses of a namespace were removed");
    }
    // Whoever has lost the answer repeats the call, which finds nothing.
    let found = (is_there || had_any).then_some(found);
    Ok(v1::DeleteNamespaceResponse { namespace: found, operation_ids, uncounted_shards, goes_on })
}

/// Findings of a look at a namespace.
struct NamespaceFindings {
    /// How many topics memory knows.
    topics: u64,
    /// Topics that have items.
    with_items: Vec<String>,
    /// Counts so far.
    counts: Option<v1::Counts>,
    /// Others have items too.
    goes_on: bool,
}

/// Looks at its topics until one has an item, or with `force` as many as a call takes.
async fn look(
    admin: &Admin,
    ctx: &Ctx,
    namespace: &Namespace,
    force: bool,
) -> Result<NamespaceFindings, Refusal> {
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
                return Ok(NamespaceFindings { topics, with_items, counts, goes_on: true });
            }
            with_items.push(topic.topic);
        }
        topics += 1;
        if tokio::time::Instant::now() >= ctx.call.deadline() {
            let message = format!("{topics} topics were looked at, and there are more");
            return Err(Refusal::new(Reason::DeadlineExceeded, message));
        }
    }
    let incomplete: BTreeSet<u32> = walk.incomplete;
    match incomplete.is_empty() {
        true => Ok(NamespaceFindings { topics, with_items, counts, goes_on: false }),
        false => Err(not_asked(&incomplete.into_iter().collect::<Vec<_>>())),
    }
}
