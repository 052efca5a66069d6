//! ListTopics and GetTopic.

use std::{collections::BTreeSet, time::Duration};

use forebay_edge::rpc::{
    fields,
    page_token::{List, not_of_this_list},
    rules::ALL_NAMESPACES,
};
use forebay_engine::{RETRY_AFTER, TopicScope, TopicsCall};
use forebay_peers::{
    history::{RECENT_STEP, RECENT_TOPICS_MAX},
    looks::{
        latencies::PERCENTILE_BYTES,
        topics::{FLOW_BYTES, name_of, position},
    },
};
use forebay_proto::{peer, time::from_timestamp, v1};
use forebay_types::{
    Namespace, Reason, Refusal, Timestamp, TopicName,
    filter::{Field, FieldValue, Filter, Kind},
};

use super::{
    context::{Admin, page_rows},
    ctx::Ctx,
    greatest::{Figure, Greatest},
    history, pauses,
    settings::{self, SETTINGS_BYTES},
};
use crate::gather::TopicScan;

/// Fields of a filter.
const FIELDS: &[Field] = &[
    ("topic", Kind::Text),
    ("namespace", Kind::Text),
    ("state", Kind::Word(&["ready", "leased", "scheduled", "dead"])),
    ("ready", Kind::Number),
    ("leased", Kind::Number),
    ("scheduled", Kind::Number),
    ("dead", Kind::Number),
    ("waiting", Kind::Number),
    ("ready_age", Kind::Span),
];
/// Topics that one page looks at.
const SCANNED_MAX: u64 = 50_000;
/// Topics of one scan.
const SCAN_TOPICS: usize = 1_000;
/// The longest that one page looks for topics. What it has found by then is the page.
const PAGE_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes that the topics of one scan may take.
const SCAN_BYTES: usize = SCAN_TOPICS * 1024;
/// Bytes that one topic with its priorities may take.
const TOPIC_BYTES_MAX: usize = 8 << 10;
/// Bytes that a topic takes in the answer beside its names.
const TOPIC_BYTES: usize = 128 + FLOW_BYTES + PERCENTILE_BYTES;

/// Query of a request.
struct Query {
    /// The tenant, or "-".
    namespace: Namespace,
    /// Which topics pass.
    filter: Filter,
    /// Where they can be.
    scope: TopicScope,
    /// Topics of the page.
    size: usize,
    /// When the request came, by which ages are told.
    now: Timestamp,
}

/// Serves ListTopics.
pub async fn list(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ListTopicsRequest,
) -> Result<v1::ListTopicsResponse, Refusal> {
    let namespace = admin.rules.namespace_or_all(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let filter = Filter::parse(&request.filter, FIELDS)?;
    let figures = figures_of(&request.order_by)?;
    let scope = TopicScope {
        namespace: (&*namespace != ALL_NAMESPACES).then(|| namespace.clone()),
        prefix: filter.prefix_of("topic").to_owned(),
    };
    let size = page_rows(request.page_size);
    if request.recent && size > RECENT_TOPICS_MAX {
        let message = format!("must be at most {RECENT_TOPICS_MAX} with recent");
        return Err(Refusal::field("page_size", message));
    }
    let query = Query { namespace, filter, scope, size, now: admin.clock.wall() };
    let (tokens, namespace) = (&admin.tokens, &*query.namespace);
    let list = List { tokens, name: "ListTopics", namespace, query: &request.filter };
    let _look = admin.gather.admit(&query.namespace, SCAN_BYTES)?;
    let mut response = match figures[..] {
        [] => {
            let position = list.position(&request.page_token)?;
            let after =
                position.map(|position| name_of(&position).ok_or_else(not_of_this_list)).transpose()?;
            by_name(admin, ctx, &query, after, &list).await?
        }
        [..] if !request.page_token.is_empty() => {
            let message = "must be empty: topics in order of a figure have one page";
            return Err(Refusal::field("page_token", message));
        }
        [..] => by_figures(admin, ctx, &query, &figures).await?,
    };
    pauses::add_to(admin, &query.namespace, &mut response.topics).await?;
    if request.recent {
        add_recent(admin, &query.namespace, &mut response.topics).await;
    }
    let bytes = |topic: &v1::Topic| {
        let settings = topic.settings.as_ref().map_or(0, |_| SETTINGS_BYTES);
        let recent = size_of_val(&*topic.recent_ready);
        let names = topic.namespace.len() + topic.topic.len();
        names + TOPIC_BYTES + pauses::bytes(&topic.pauses) + settings + recent
    };
    ctx.call.reserve_answer(response.topics.iter().map(bytes).sum())?;
    Ok(response)
}

/// Tells how many items of the topics of a page were ready lately. Without it the page is right all the same.
async fn add_recent(admin: &Admin, caller: &Namespace, topics: &mut [v1::Topic]) {
    let name = |topic: &v1::Topic| peer::TopicName {
        namespace: topic.namespace.clone(),
        topic: topic.topic.clone(),
    };
    let (names, until) = (topics.iter().map(name).collect(), history::until(admin, RECENT_STEP));
    let Some(lines) = admin.gather.recent(caller, names, until).await else { return };
    topics.iter_mut().zip(lines).for_each(|(topic, line)| topic.recent_ready = line);
}

/// Serves GetTopic.
pub async fn get(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::GetTopicRequest,
) -> Result<v1::GetTopicResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let topic = fields::topic_or_pattern(&admin.rules.limits, "topic", &request.topic)?;
    let name = TopicName { namespace, topic };
    let mut found = look(admin, &name).await?;
    let Some(topic) = &found.topic else {
        if found.incomplete_shards.is_empty() {
            return Err(Refusal::new(Reason::TopicNotFound, format!("there is no topic {}", request.topic)));
        }
        let shards = &found.incomplete_shards;
        let message = format!("no shard that answered has the topic, and {shards:?} could not be asked");
        return Err(Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER));
    };
    // They were valid when they were set.
    let own = settings::of_topic(&admin.rules.limits, topic.settings.as_ref()).unwrap_or_default();
    let effective = settings::effective(admin, &name, own).await?;
    found.effective_settings = Some(settings::topic_message(&effective));
    if found.incomplete_shards.is_empty() && name.prefix().is_none() {
        scale_by(&mut found, admin.clock.wall());
    }
    Ok(found)
}

/// The figures by which consumers are scaled, of an answer that has all shards: part of a backlog would end
/// consumers during an outage.
fn scale_by(found: &mut v1::GetTopicResponse, now: Timestamp) {
    let Some(topic) = &found.topic else { return };
    let is_paused = topic.pauses.iter().any(|pause| pause.side() == v1::Side::Dequeue);
    let age = match topic.oldest_ready_at {
        _ if is_paused => Some(0.0),
        Some(since) => Some(now.since(from_timestamp(since)).as_secs_f64()),
        None => (topic.ready_count == 0).then_some(0.0),
    };
    found.backlog = Some(if is_paused { 0 } else { topic.ready_count + topic.leased_count });
    found.oldest_age_seconds = age;
}

/// A topic that has items, or a topic or a pattern of which something is wanted.
pub async fn look(admin: &Admin, name: &TopicName) -> Result<v1::GetTopicResponse, Refusal> {
    let _look = admin.gather.admit(&name.namespace, TOPIC_BYTES_MAX)?;
    let mut found = match name.prefix() {
        None => admin.gather.topic(name).await?,
        // No shard has anything of a pattern.
        Some(_) => v1::GetTopicResponse::default(),
    };
    found.topic = with_wishes(admin, name, found.topic.take()).await?;
    Ok(found)
}

/// A topic with its pauses and settings. One that has such can be shown though it has no item.
async fn with_wishes(
    admin: &Admin,
    name: &TopicName,
    topic: Option<v1::Topic>,
) -> Result<Option<v1::Topic>, Refusal> {
    let nothing = v1::Topic {
        namespace: name.namespace.to_string(),
        topic: name.topic.to_string(),
        ..v1::Topic::default()
    };
    let mut topic = [topic.unwrap_or_else(|| nothing.clone())];
    pauses::add_to(admin, &name.namespace, &mut topic).await?;
    Ok(Some(topic).map(|[topic]| topic).filter(|topic| *topic != nothing))
}

/// The figures by which topics are put in order. None: by name.
fn figures_of(order_by: &str) -> Result<Vec<Figure>, Refusal> {
    if matches!(order_by, "" | "name") {
        return Ok(Vec::new());
    }
    let mut figures = Vec::new();
    for name in order_by.split(',') {
        let figure = match name.trim() {
            "-ready" => Figure::Ready,
            "-leased" => Figure::Leased,
            "-scheduled" => Figure::Scheduled,
            "-dead" => Figure::Dead,
            "-oldest" => Figure::Oldest,
            _ => {
                let message = "must be name, or -ready, -leased, -scheduled, -dead or -oldest, or several of \
                               these with commas between";
                return Err(Refusal::field("order_by", message));
            }
        };
        if figures.contains(&figure) {
            return Err(Refusal::field("order_by", format!("has {} twice", name.trim())));
        }
        figures.push(figure);
    }
    Ok(figures)
}

/// The first of some topics in an order by figures, as ListTopics has them. In another order there are none.
pub fn first_in_order(topics: &[v1::Topic], order_by: &str, most: usize) -> Vec<v1::Topic> {
    let mut greatest = Greatest::new(&figures_of(order_by).unwrap_or_default(), most);
    topics.iter().for_each(|topic| greatest.add(topic));
    greatest.into_topics()
}

/// A page by name. It ends where it is full, where there is nothing more, or where it has looked at enough.
async fn by_name(
    admin: &Admin,
    ctx: &Ctx,
    query: &Query,
    mut after: Option<TopicName>,
    list: &List<'_>,
) -> Result<v1::ListTopicsResponse, Refusal> {
    let began = tokio::time::Instant::now();
    let until = ctx.call.deadline().min(began + PAGE_TIME_MAX);
    let mut page = v1::ListTopicsResponse::default();
    let mut incomplete = BTreeSet::new();
    loop {
        let wanted = query.size - page.topics.len();
        // Where few topics pass, it takes many to fill a page.
        let limit = if page.scanned == 0 { wanted } else { SCAN_TOPICS };
        let scanned = TopicsCall { scope: query.scope.clone(), after, limit, due: true, forgotten: false };
        let TopicScan { topics, mut through, shards, scanned, .. } = admin.gather.topics(scanned).await?;
        incomplete.extend(admin.gather.incomplete(&shards));
        page.scanned += scanned;
        for topic in topics.into_iter().filter(|topic| query.passes(topic)) {
            if page.topics.len() == query.size {
                // The page ends with the one before.
                through = page.topics.last().map(name_in);
                break;
            }
            page.topics.push(topic);
        }
        let is_full = page.topics.len() == query.size;
        let is_over = is_full || page.scanned >= SCANNED_MAX || tokio::time::Instant::now() >= until;
        match through {
            Some(through) if is_over => {
                page.next_page_token = list.token(&position(&through));
                break;
            }
            Some(through) => after = Some(through),
            None => break,
        }
    }
    page.incomplete_shards = incomplete.into_iter().collect();
    Ok(page)
}

/// The topics with the greatest figures, after one walk through all. Several figures share the page.
async fn by_figures(
    admin: &Admin,
    ctx: &Ctx,
    query: &Query,
    figures: &[Figure],
) -> Result<v1::ListTopicsResponse, Refusal> {
    let _walk = admin.gather.admit_walk(&query.namespace)?;
    let mut page = v1::ListTopicsResponse::default();
    let mut incomplete = BTreeSet::new();
    let most = query.size.min(page_rows(u32::MAX) / figures.len());
    let mut greatest = Greatest::new(figures, most);
    let mut after = None;
    loop {
        let scanned = TopicsCall {
            scope: query.scope.clone(),
            after,
            limit: SCAN_TOPICS,
            due: false,
            forgotten: false,
        };
        let TopicScan { topics, through, shards, scanned, .. } = admin.gather.topics(scanned).await?;
        incomplete.extend(admin.gather.incomplete(&shards));
        page.scanned += scanned;
        topics.iter().filter(|topic| query.passes(topic)).for_each(|topic| greatest.add(topic));
        after = through;
        if after.is_none() {
            break;
        }
        if tokio::time::Instant::now() >= ctx.call.deadline() {
            let message = format!("{} topics were looked at, and there are more", page.scanned);
            return Err(Refusal::new(Reason::DeadlineExceeded, message));
        }
    }
    page.topics = greatest.into_topics();
    page.incomplete_shards = incomplete.into_iter().collect();
    Ok(page)
}

impl Query {
    fn passes(&self, topic: &v1::Topic) -> bool {
        self.filter.holds(|field| match field {
            "topic" => FieldValue::Text((&topic.topic).into()),
            "namespace" => FieldValue::Text((&topic.namespace).into()),
            "state" => FieldValue::Words(states(topic)),
            "ready" => number(topic.ready_count),
            "leased" => number(topic.leased_count),
            "scheduled" => number(topic.scheduled_count),
            "dead" => number(topic.dead_count),
            "waiting" => number(topic.waiting_calls),
            "ready_age" => topic.oldest_ready_at.map_or(FieldValue::Nothing, |at| {
                let since = at.seconds * 1_000_000 + i64::from(at.nanos) / 1_000;
                FieldValue::Number((self.now.as_micros() - since).max(0))
            }),
            _ => FieldValue::Nothing,
        })
    }
}

/// A count as filters have it.
fn number(count: u64) -> FieldValue<'static> {
    FieldValue::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

fn states(topic: &v1::Topic) -> Vec<&'static str> {
    let states = [
        ("ready", topic.ready_count),
        ("leased", topic.leased_count),
        ("scheduled", topic.scheduled_count),
        ("dead", topic.dead_count),
    ];
    states.into_iter().filter(|(_, count)| *count > 0).map(|(state, _)| state).collect()
}

fn name_in(topic: &v1::Topic) -> TopicName {
    TopicName::new(topic.namespace.as_str(), topic.topic.as_str())
}
