//! ListNamespaces and GetNamespace.

use std::time::Duration;

use forebay_edge::rpc::{
    page_token::{List, not_of_this_list},
    rules::ALL_NAMESPACES,
};
use forebay_engine::{DesiredSettings, RETRY_AFTER, TopicScope};
use forebay_peers::looks::topics::{FLOW_BYTES, add_counts, add_rates};
use forebay_proto::{time::earlier, v1};
use forebay_types::{Namespace, Reason, Refusal, TopicName};
use tokio::time::Instant;

use super::{
    context::{Admin, page_rows},
    ctx::Ctx,
    pauses,
    settings::{self, SETTINGS_BYTES},
    topic_walk::{SCAN_BYTES, TopicWalk},
};

/// Topics that one page looks at, and one namespace.
const TOPICS_MAX: u64 = 50_000;
/// The longest that one page looks at topics.
const PAGE_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes that a namespace takes in the answer beside its name and its pauses.
const NAMESPACE_BYTES: usize = 96 + FLOW_BYTES + SETTINGS_BYTES;

/// Serves ListNamespaces.
pub async fn list(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ListNamespacesRequest,
) -> Result<v1::ListNamespacesResponse, Refusal> {
    let list = List { tokens: &admin.tokens, name: "ListNamespaces", namespace: ALL_NAMESPACES, query: "" };
    let position = list.position(&request.page_token)?.map(String::from_utf8).transpose();
    let after = position.map_err(|_| not_of_this_list())?;
    let size = page_rows(request.page_size);
    let all: Namespace = ALL_NAMESPACES.into();
    let _look = admin.gather.admit(&all, SCAN_BYTES)?;
    // No name has a zero byte, so nothing is between a name and this one.
    let from = after.as_ref().map_or_else(String::new, |after| format!("{after}\0"));
    let named = admin.gather.policy_namespaces(all.clone(), (&*from).into(), size).await?;
    let scope = TopicScope { namespace: None, prefix: String::new() };
    let walk = TopicWalk::of_namespaces(scope, after.as_deref().map(TopicWalk::behind));
    let mut page = Page { admin, walk, until: deadline(ctx), rows: Vec::new() };
    let goes_on = page.fill(size, named).await?;
    let Page { walk, rows: mut namespaces, .. } = page;
    add_wanted(admin, &all, &mut namespaces).await?;
    let last = namespaces.last().filter(|_| goes_on).map(|last| last.namespace.clone());
    ctx.call.reserve_answer(namespaces.iter().map(bytes).sum())?;
    Ok(v1::ListNamespacesResponse {
        namespaces,
        next_page_token: last.map(|last| list.token(last.as_bytes())).unwrap_or_default(),
        incomplete_shards: walk.incomplete.into_iter().collect(),
        scanned: walk.scanned,
        uncounted_shards: walk.uncounted.into_iter().collect(),
    })
}

/// Serves GetNamespace.
pub async fn get(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::GetNamespaceRequest,
) -> Result<v1::GetNamespaceResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let _look = admin.gather.admit(&namespace, SCAN_BYTES)?;
    let scope = TopicScope { namespace: Some(namespace.clone()), prefix: String::new() };
    let walk = TopicWalk::of_namespaces(scope, None);
    let mut page = Page { admin, walk, until: deadline(ctx), rows: Vec::new() };
    let mut found = page.sum(&namespace).await?.figures;
    let incomplete_shards: Vec<u32> = page.walk.incomplete.into_iter().collect();
    let uncounted_shards: Vec<u32> = page.walk.uncounted.into_iter().collect();
    let wanted = add_wanted(admin, &namespace, std::slice::from_mut(&mut found)).await?;
    let is_empty = found.topic_count == 0 && found.counts.is_none();
    if is_empty && !is_named(admin, &namespace).await? {
        let silent = [incomplete_shards, uncounted_shards].concat();
        if silent.is_empty() {
            return Err(not_found(&namespace));
        }
        let message = format!("no shard that answered knows it, and {silent:?} could not be asked");
        return Err(Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER));
    }
    let own = wanted.first().map(|wanted| wanted.settings).unwrap_or_default();
    let effective = settings::effective(admin, &TopicName::new(namespace, ""), own).await?;
    Ok(v1::GetNamespaceResponse {
        namespace: Some(found),
        effective_settings: Some(settings::namespace_message(&effective)),
        incomplete_shards,
        uncounted_shards,
    })
}

/// Adds their own settings and pauses to namespaces, and returns what is wanted of each.
pub(crate) async fn add_wanted(
    admin: &Admin,
    caller: &Namespace,
    namespaces: &mut [v1::Namespace],
) -> Result<Vec<DesiredSettings>, Refusal> {
    let names = namespaces.iter().map(|it| TopicName::new(it.namespace.as_str(), "")).collect();
    let wanted = admin.gather.policies(caller.clone(), names).await?;
    let now = admin.clock.wall();
    for (namespace, DesiredSettings { policy, settings, version, .. }) in namespaces.iter_mut().zip(&wanted) {
        namespace.pauses = pauses::pauses_of(policy, true, now);
        namespace.settings = (!settings.is_nothing()).then(|| settings::namespace_message(settings));
        namespace.settings_version = *version;
    }
    Ok(wanted)
}

/// Whether something is wanted of the namespace or of one of its topics, or set for it.
pub async fn is_named(admin: &Admin, namespace: &Namespace) -> Result<bool, Refusal> {
    let named = admin.gather.policy_namespaces(namespace.clone(), namespace.clone(), 1).await?;
    Ok(named.first() == Some(namespace))
}

/// There is nothing of it.
pub fn not_found(namespace: &str) -> Refusal {
    let message = format!("namespace {namespace} has no topics, counts, settings or pauses");
    Refusal::new(Reason::NamespaceNotFound, message)
}

fn deadline(ctx: &Ctx) -> Instant {
    ctx.call.deadline().min(Instant::now() + PAGE_TIME_MAX)
}

fn bytes(namespace: &v1::Namespace) -> usize {
    namespace.namespace.len() + NAMESPACE_BYTES + pauses::bytes(&namespace.pauses)
}

/// The sums over the topics of a namespace.
struct Sum {
    /// The namespace with its figures.
    figures: v1::Namespace,
    /// All of its topics were looked at.
    is_whole: bool,
}

/// A page of namespaces that is being put together.
struct Page<'a> {
    /// Context that is asked.
    admin: &'a Admin,
    /// The topics.
    walk: TopicWalk,
    /// It is to be done until then.
    until: Instant,
    /// The namespaces so far.
    rows: Vec<v1::Namespace>,
}

impl Page<'_> {
    /// Adds namespaces that have topics, and those that are named. Returns whether there may be more.
    async fn fill(&mut self, size: usize, named: Vec<Namespace>) -> Result<bool, Refusal> {
        let mut named = named.into_iter().peekable();
        while self.rows.len() < size {
            let with_topics = self.walk.peek(self.admin).await?.map(|topic| topic.namespace.as_str().into());
            let next: Option<Namespace> = with_topics.into_iter().chain(named.peek().cloned()).min();
            let Some(next) = next else { return Ok(false) };
            named.next_if_eq(&next);
            let Sum { figures, is_whole } = self.sum(&next).await?;
            if !is_whole && !self.rows.is_empty() {
                // The next page begins with it, and has more time for it.
                return Ok(true);
            }
            self.rows.push(figures);
            if self.is_over() {
                break;
            }
        }
        Ok(named.peek().is_some() || self.walk.peek(self.admin).await?.is_some() || self.rows.len() == size)
    }

    /// Adds up the topics of the namespace that comes next.
    async fn sum(&mut self, namespace: &Namespace) -> Result<Sum, Refusal> {
        let mut sum = v1::Namespace { namespace: namespace.to_string(), ..v1::Namespace::default() };
        while self.walk.peek(self.admin).await?.is_some_and(|topic| topic.namespace == **namespace) {
            if sum.topic_count >= TOPICS_MAX || self.is_over() && sum.topic_count > 0 {
                sum.topics_cut = true;
                self.walk.skip(namespace);
                return Ok(Sum { figures: sum, is_whole: false });
            }
            let Some(topic) = self.walk.next(self.admin).await? else { break };
            add(&mut sum, &topic);
        }
        Ok(Sum { figures: sum, is_whole: true })
    }

    fn is_over(&self) -> bool {
        self.walk.scanned > TOPICS_MAX || Instant::now() >= self.until
    }
}

fn add(sum: &mut v1::Namespace, topic: &v1::Topic) {
    // One without a name stands for those that are forgotten.
    sum.topic_count += u64::from(!topic.topic.is_empty());
    sum.ready_count += topic.ready_count;
    sum.leased_count += topic.leased_count;
    sum.scheduled_count += topic.scheduled_count;
    sum.dead_count += topic.dead_count;
    sum.waiting_calls += topic.waiting_calls;
    add_counts(&mut sum.counts, topic.counts.as_ref());
    add_rates(&mut sum.rates, topic.rates.as_ref());
    sum.oldest_ready_at = earlier(sum.oldest_ready_at, topic.oldest_ready_at);
}
