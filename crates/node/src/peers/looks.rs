//! Asks other nodes for what operators look at, and answers them.

use std::time::Duration;

use forebay_engine::{ConsumersCall, DeadGroups, DeadGroupsCall, Engine, ItemsCall, TopicsCall};
use forebay_proto::peer;
use forebay_types::{ALL_NAMESPACES, ItemId, Namespace, Refusal, Seq, ShardId, TopicName};
use tonic::{Code, Request, Response, Status};

use super::{
    channels::Client,
    links::PeerLinks,
    room::Load,
    wire::{consumers, dead_groups, items, topics},
};
use crate::history::History;

/// How long another node may take. It gives each of its shards 5 s.
pub(super) const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// The most topics that another node may ask for at once.
const TOPICS_MAX: u32 = 1_000;
/// The most items.
const ITEMS_MAX: u32 = 1_000;
/// The most bytes of each payload.
const PAYLOAD_BYTES_MAX: u32 = 256 << 10;
/// The most dead letters of each shard.
const DEAD_LETTERS_MAX: u32 = 10_000;

impl PeerLinks {
    /// Lists topics of another node. `None`: no answer came.
    pub async fn list_topics(&self, address: &str, call: &TopicsCall) -> Option<peer::ListTopicsResponse> {
        let request = topics::topics_request(call);
        let caller = call.scope.namespace.clone().unwrap_or_else(|| ALL_NAMESPACES.into());
        self.look(address, &caller, async |mut client| client.list_topics(limited(request)).await).await
    }

    /// Has another node's shards count a namespace anew. Returns those that do. `None`: no answer came.
    pub async fn forget_counts(&self, address: &str, namespace: &Namespace) -> Option<Vec<u32>> {
        let request = peer::ForgetCountsRequest { namespace: namespace.to_string() };
        let ask = async |mut client: Client| client.forget_counts(limited(request)).await;
        self.look(address, namespace, ask).await.map(|answer| answer.shards)
    }

    /// Describes a topic as another node sees it. `None`: no answer came.
    pub async fn get_topic(&self, address: &str, name: &TopicName) -> Option<peer::GetTopicResponse> {
        let request = peer::GetTopicRequest { name: Some(topics::topic_name(name)) };
        self.look(address, &name.namespace, async |mut client| client.get_topic(limited(request)).await).await
    }

    /// Lists items of a topic in another node's shards. `None`: no answer came.
    pub async fn list_items(&self, address: &str, call: &ItemsCall) -> Option<peer::ListItemsResponse> {
        let request = items::items_request(call);
        let caller = &call.name.namespace;
        self.look(address, caller, async |mut client| client.list_items(limited(request)).await).await
    }

    /// Shows an item of another node. `None`: no answer came.
    pub async fn get_item(
        &self,
        address: &str,
        namespace: &Namespace,
        request: peer::GetItemRequest,
    ) -> Option<peer::GetItemResponse> {
        self.look(address, namespace, async |mut client| client.get_item(limited(request)).await).await
    }

    /// Groups dead letters of another node's shards. `None`: no answer came.
    pub async fn group_dead_letters(&self, address: &str, call: &DeadGroupsCall) -> Option<DeadGroups> {
        let request = dead_groups::request(call);
        let ask = async |mut client: Client| client.group_dead_letters(limited(request)).await;
        self.look(address, &call.namespace, ask).await.map(dead_groups::found)
    }

    /// Lists consumers that another node knows. `None`: no answer came.
    pub async fn list_consumers(
        &self,
        address: &str,
        call: &ConsumersCall,
    ) -> Option<peer::ListConsumersResponse> {
        let request = consumers::request(call);
        let caller: Namespace = request.namespace.as_str().into();
        let ask = async |mut client: Client| client.list_consumers(limited(request)).await;
        self.look(address, &caller, ask).await
    }

    /// How figures were, as another node knows it. `None`: no answer came.
    pub async fn get_history(
        &self,
        address: &str,
        request: &peer::GetHistoryRequest,
    ) -> Option<peer::GetHistoryResponse> {
        let namespace: Namespace = request.namespace.as_str().into();
        let ask = async |mut client: Client| client.get_history(limited(request.clone())).await;
        self.look(address, &namespace, ask).await
    }

    /// How many items of topics were ready, as another node knows it. `None`: no answer came.
    pub async fn list_recent(
        &self,
        address: &str,
        caller: &Namespace,
        request: &peer::ListRecentRequest,
    ) -> Option<peer::ListRecentResponse> {
        let ask = async |mut client: Client| client.list_recent(limited(request.clone())).await;
        self.look(address, caller, ask).await
    }

    /// Asks a node over the connection for calls that are passed on: no question of the cluster waits behind
    /// a long list.
    pub(super) async fn look<T>(
        &self,
        address: &str,
        caller: &Namespace,
        ask: impl AsyncFnOnce(Client) -> Result<Response<T>, Status>,
    ) -> Option<T> {
        let link = self.bulk(address)?;
        let _place = link.room.take(caller, Load::Settle, 0).ok()?;
        let asked = async {
            let (number, client) = link.client().await.ok()?;
            match ask(client).await {
                Ok(answer) => Some(answer.into_inner()),
                Err(error) => {
                    tracing::debug!(node = address, %error, "a look at another node failed");
                    // Another code is an answer: that of a node without this call, or one that refuses.
                    if matches!(error.code(), Code::Unavailable | Code::Unknown | Code::Internal) {
                        link.broke(number).await;
                    }
                    None
                }
            }
        };
        tokio::time::timeout(LOOK_TIMEOUT, asked).await.ok().flatten()
    }
}

pub(super) fn limited<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(LOOK_TIMEOUT);
    request
}

/// Lists topics for another node.
pub async fn list_topics(
    engine: &Engine,
    mut request: peer::ListTopicsRequest,
) -> Result<peer::ListTopicsResponse, Status> {
    request.limit = request.limit.clamp(1, TOPICS_MAX);
    let page = engine.list_topics(topics::topics_call(request)).await.map_err(refused)?;
    Ok(topics::topics_response(page))
}

/// Has this node's shards count a namespace anew, for another node.
pub async fn forget_counts(
    engine: &Engine,
    request: peer::ForgetCountsRequest,
) -> Result<peer::ForgetCountsResponse, Status> {
    let shards = engine.forget_counts(request.namespace.into()).await.map_err(refused)?;
    Ok(peer::ForgetCountsResponse { shards: shards.into_iter().map(|id| id.0).collect() })
}

/// Describes a topic to another node.
pub async fn get_topic(
    engine: &Engine,
    request: peer::GetTopicRequest,
) -> Result<peer::GetTopicResponse, Status> {
    let name = request.name.ok_or_else(|| Status::invalid_argument("the topic has no name"))?;
    let name = TopicName::new(name.namespace, name.topic);
    Ok(topics::topic_details(engine.topic(name).await.map_err(refused)?))
}

/// Lists consumers for another node.
pub async fn list_consumers(
    engine: &Engine,
    request: peer::ListConsumersRequest,
) -> Result<peer::ListConsumersResponse, Status> {
    Ok(consumers::response(engine.consumers(&consumers::call(request)).await.map_err(refused)?))
}

/// Tells another node how figures were.
pub async fn get_history(
    engine: &Engine,
    history: &History,
    request: &peer::GetHistoryRequest,
) -> Result<peer::GetHistoryResponse, Status> {
    history.answer_with_shards(engine, request).await.map_err(refused)
}

/// Lists items for another node.
pub async fn list_items(
    engine: &Engine,
    mut request: peer::ListItemsRequest,
) -> Result<peer::ListItemsResponse, Status> {
    request.limit = request.limit.clamp(1, ITEMS_MAX);
    request.payload_max = request.payload_max.min(PAYLOAD_BYTES_MAX);
    let call = items::items_call(request)
        .ok_or_else(|| Status::invalid_argument("the topic or the state is missing"))?;
    Ok(items::items_response(engine.list_items(call).await.map_err(refused)?))
}

/// Shows an item to another node.
pub async fn get_item(
    engine: &Engine,
    request: peer::GetItemRequest,
) -> Result<peer::GetItemResponse, Status> {
    let peer::GetItemRequest { namespace, shard, seq, payload_max } = request;
    let id = ItemId { shard: ShardId(shard), seq: Seq(seq) };
    let payload_max = payload_max.min(PAYLOAD_BYTES_MAX) as usize;
    let found = engine.item(&namespace.into(), id, payload_max).await.map_err(refused)?;
    Ok(items::item_response(found))
}

/// Groups dead letters for another node.
pub async fn group_dead_letters(
    engine: &Engine,
    mut request: peer::GroupDeadLettersRequest,
) -> Result<peer::GroupDeadLettersResponse, Status> {
    request.window = request.window.clamp(1, DEAD_LETTERS_MAX);
    let found = engine.dead_groups(dead_groups::call(request)).await.map_err(refused)?;
    Ok(dead_groups::response(found))
}

pub(super) fn refused(refusal: Refusal) -> Status {
    Status::failed_precondition(refusal.to_string())
}
