//! `GetActiveTopics`: decodes the page token, has the engine list the topics, encodes the next token.

use forebay_edge::{
    admission::Call,
    rpc::{fields, token},
};
use forebay_engine::{ActiveTopic, ActiveTopicsCall};
use forebay_proto::{
    time::to_timestamp,
    v1::{ActiveTopic as WireTopic, GetActiveTopicsRequest, GetActiveTopicsResponse},
};
use forebay_types::Refusal;

use super::queue::Queue;

/// Topics of a page if `page_size` is 0.
const PAGE_TOPICS_DEFAULT: usize = 100;
/// The most topics of a page.
const PAGE_TOPICS_MAX: usize = 1_000;

/// Bytes of a topic in the answer beside its name.
const TOPIC_BYTES: usize = 64;

/// Serves the call.
pub async fn active_topics(
    queue: &Queue,
    call: &Call,
    request: GetActiveTopicsRequest,
) -> Result<GetActiveTopicsResponse, Refusal> {
    let namespace = queue.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    let prefix = request.topic_prefix;
    fields::prefix(&queue.rules.limits, "topic_prefix", &prefix)?;
    let limit = match request.page_size as usize {
        0 => PAGE_TOPICS_DEFAULT,
        number => fields::within("page_size", number, 1, PAGE_TOPICS_MAX)?,
    };
    let after = token::decode(&namespace, &prefix, &request.page_token)?;

    let asked = ActiveTopicsCall {
        namespace: namespace.clone(),
        limit,
        after,
        prefix: prefix.clone(),
        named: Vec::new(),
    };
    let page = queue.front.active_topics(asked).await?;
    call.reserve_answer(page.topics.iter().map(|topic| topic.position.topic.len() + TOPIC_BYTES).sum())?;
    let next_page_token = page.next.map(|next| token::encode(&namespace, &prefix, &next));
    Ok(GetActiveTopicsResponse {
        next_page_token: next_page_token.unwrap_or_default(),
        incomplete: !page.missing.is_empty(),
        topics: page.topics.into_iter().map(to_wire).collect(),
    })
}

fn to_wire(topic: ActiveTopic) -> WireTopic {
    WireTopic {
        topic: topic.position.topic.to_string(),
        ready_count: topic.ready,
        best_priority: topic.position.best_priority,
        oldest_ready_at: Some(to_timestamp(topic.position.oldest_ready_at)),
        leased_count: topic.leased,
        scheduled_count: topic.scheduled,
    }
}
