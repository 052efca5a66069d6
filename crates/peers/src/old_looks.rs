//! Looks, as nodes of the release before `Ask` ask for them: each is the same look, with its answer in other
//! messages. This file goes with the next release, and the calls and messages with it that only it names.

use forebay_engine::Engine;
use forebay_proto::{peer, time::from_timestamp, v1};
use forebay_types::{ItemId, Seq, ShardId, Timestamp};
use tonic::Status;

use crate::{
    ask::refused,
    history::History,
    looks::{Look, Part, consumers, history::step_of, items, topics},
};

async fn look<L: Look>(engine: &Engine, history: &History, look: L) -> Result<Part<L::Answer>, Status> {
    look.look(engine, history).await.map_err(refused)
}

/// Lists topics.
pub async fn list_topics(
    engine: &Engine,
    history: &History,
    request: peer::ListTopicsRequest,
) -> Result<peer::ListTopicsResponse, Status> {
    let Part { answer, rest } = look(engine, history, request).await?;
    let through = topics::name_of(&rest.through).as_ref().map(topics::topic_name);
    let v1::ListTopicsResponse { topics, scanned, .. } = answer;
    let peer::AskResponse { shards, counted_shards, latencies, .. } = rest;
    Ok(peer::ListTopicsResponse { topics, through, shards, scanned, counted_shards, latencies })
}

/// Describes a topic.
pub async fn get_topic(
    engine: &Engine,
    history: &History,
    request: peer::GetTopicRequest,
) -> Result<peer::GetTopicResponse, Status> {
    let peer::TopicName { namespace, topic } =
        request.name.ok_or_else(|| Status::invalid_argument("the topic has no name"))?;
    let Part { answer, rest } = look(engine, history, v1::GetTopicRequest { namespace, topic }).await?;
    let v1::GetTopicResponse { topic, priorities, priorities_cut, .. } = answer;
    let latencies = rest.latencies.into_iter().find_map(|it| it.latencies);
    Ok(peer::GetTopicResponse { topic, priorities, priorities_cut, shards: rest.shards, latencies })
}

/// Lists items.
pub async fn list_items(
    engine: &Engine,
    history: &History,
    request: peer::ListItemsRequest,
) -> Result<peer::ListItemsResponse, Status> {
    let position = |bytes: &[u8]| items::position_of(bytes).map(items::to_wire);
    let Part { answer, rest } = look(engine, history, request).await?;
    let listed = rest.positions.iter().zip(answer.items);
    Ok(peer::ListItemsResponse {
        items: listed
            .map(|(at, item)| peer::ListedItem { position: position(at), item: Some(item) })
            .collect(),
        through: position(&rest.through),
        shards: rest.shards,
        scanned: answer.scanned,
        filtered: true,
    })
}

/// Shows an item.
pub async fn get_item(
    engine: &Engine,
    history: &History,
    request: peer::GetItemRequest,
) -> Result<peer::GetItemResponse, Status> {
    let peer::GetItemRequest { namespace, shard, seq, payload_max } = request;
    let item_id = ItemId { shard: ShardId(shard), seq: Seq(seq) }.to_string();
    let request =
        v1::GetItemRequest { namespace, item_id, max_payload_bytes: payload_max, ..Default::default() };
    let Part { answer, rest } = look(engine, history, request).await?;
    Ok(peer::GetItemResponse { looked: !rest.shards.is_empty(), item: answer.item })
}

/// Groups dead letters.
pub async fn group_dead_letters(
    engine: &Engine,
    history: &History,
    request: peer::GroupDeadLettersRequest,
) -> Result<peer::GroupDeadLettersResponse, Status> {
    let peer::GroupDeadLettersRequest { namespace, topic, window } = request;
    let topic = topic.unwrap_or_default();
    let Part { answer, rest } =
        look(engine, history, v1::GroupDeadLettersRequest { namespace, topic, window }).await?;
    let micros = |at: Option<_>| at.map(from_timestamp).map_or(0, Timestamp::as_micros);
    let group = |group: v1::DeadLetterGroup| peer::DeadLetterGroup {
        fingerprint: group.fingerprint,
        reason: group.reason,
        count: group.count,
        topics: group.topics,
        topics_cut: group.topics_cut,
        first_micros: micros(group.first_died_at),
        last_micros: micros(group.last_died_at),
        samples: group.sample_item_ids,
    };
    let v1::GroupDeadLettersResponse { groups, looked_at, ungrouped, total, topics_cut, .. } = answer;
    let groups = groups.into_iter().map(group).collect();
    let shards = rest.shards;
    Ok(peer::GroupDeadLettersResponse { groups, looked_at, ungrouped, total, topics_cut, shards })
}

/// Lists consumers. A node of a release before names no limit.
pub async fn list_consumers(
    engine: &Engine,
    history: &History,
    request: peer::ListConsumersRequest,
) -> Result<peer::ListConsumersResponse, Status> {
    let peer::ListConsumersRequest { namespace, after, limit } = request;
    let page_token = after.map(|it| consumers::position(&it.namespace, &it.name)).unwrap_or_default();
    let page_size = if limit == 0 { u32::MAX } else { limit };
    let request = v1::ListConsumersRequest { namespace, page_size, page_token };
    let Part { answer, rest } = look(engine, history, request).await?;
    let through = std::str::from_utf8(&rest.through).ok().and_then(consumers::name_of);
    let through =
        through.map(|(namespace, name)| peer::ConsumerName { namespace: namespace.to_string(), name });
    let v1::ListConsumersResponse { consumers, consumers_cut: cut, .. } = answer;
    Ok(peer::ListConsumersResponse { consumers, cut, shards: rest.shards, through })
}

/// Tells how figures were.
pub async fn get_history(
    engine: &Engine,
    history: &History,
    request: peer::GetHistoryRequest,
) -> Result<peer::GetHistoryResponse, Status> {
    let step = request.step;
    let Part { answer, rest } = look(engine, history, request).await?;
    let from = step_of(answer.begins_at.as_ref(), step).unwrap_or(0);
    let v1::GetHistoryResponse { lines, topics_cut, looked_every, .. } = answer;
    let looked_every = looked_every.and_then(|every| u32::try_from(every.seconds).ok()).unwrap_or(0);
    Ok(peer::GetHistoryResponse { lines, from, shards: rest.shards, topics_cut, looked_every })
}
