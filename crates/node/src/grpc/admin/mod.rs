//! The calls for those who run the cluster, as far as they only read. Changes are made with the command line
//! on the catalog.

mod cancel_items;
mod context;
mod dead_letters;
mod explain;
mod items;
mod operations;
mod pauses;
mod start_operation;
mod topics;

use std::sync::Arc;

use forebay_access::Scope;
use forebay_engine::{ShardState as EngineState, ShardStatus};
use forebay_membership::{ClusterState, NodeState as Member, Presence, ShardHome};
use forebay_proto::v1::{self, NodeState, ShardState, admin_service_server::AdminService};
use forebay_types::{Refusal, Timestamp};
use tonic::{Request, Response, Status};

pub use self::context::Admin;
use self::context::PAGE_ROWS;
use super::{
    admission::{Call, caller},
    status,
    who_am_i::who_am_i,
};
use crate::cluster::HoldUp;

impl Admin {
    fn cluster(&self) -> Option<Arc<ClusterState>> {
        self.cluster.as_ref().map(|cluster| cluster.borrow().clone())
    }

    async fn own_shards(&self) -> Vec<ShardStatus> {
        self.status.get().await.map(|status| status.shards.clone()).unwrap_or_default()
    }
}

#[tonic::async_trait]
impl AdminService for Admin {
    async fn list_nodes(
        &self,
        request: Request<v1::ListNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        let sees_all = caller(&request)?.may_everywhere(Scope::Observe);
        let v1::ListNodesRequest { page_size, page_token } = request.into_inner();
        let nodes = match self.cluster() {
            Some(cluster) => {
                let own = |node: &Member| node.name == cluster.own;
                cluster.nodes.iter().map(|it| node(it, own(it))).collect()
            }
            None => {
                let owned =
                    self.own_shards().await.iter().filter(|it| it.state == EngineState::Owned).count();
                vec![node(&Member { shards: owned, ..self.alone.clone() }, true)]
            }
        };
        let (nodes, next_page_token) =
            page(nodes, page_size, |node| node.name > page_token, |it| it.name.clone());
        let nodes = if sees_all { nodes } else { nodes.into_iter().map(for_clients).collect() };
        Ok(Response::new(v1::ListNodesResponse { nodes, next_page_token }))
    }

    async fn list_shards(
        &self,
        request: Request<v1::ListShardsRequest>,
    ) -> Result<Response<v1::ListShardsResponse>, Status> {
        let v1::ListShardsRequest { page_size, page_token } = request.into_inner();
        let after = match page_token.as_str() {
            "" => 0,
            token => token
                .parse::<u32>()
                .map_err(|_| Status::invalid_argument("page_token: is not a page token of this list"))?,
        };
        let own = self.own_shards().await;
        let cluster = self.cluster();
        let homes = |id: u32| cluster.as_ref()?.shards.iter().find(|home| home.id.0 == id);
        let alone = &self.alone.name;
        let shards =
            own.iter().map(|status| shard(status, homes(status.id), cluster.is_some(), alone)).collect();
        let (shards, next_page_token) =
            page(shards, page_size, |shard| shard.id > after, |shard| shard.id.to_string());
        Ok(Response::new(v1::ListShardsResponse { shards, next_page_token }))
    }

    async fn add_shard(
        &self,
        _request: Request<v1::AddShardRequest>,
    ) -> Result<Response<v1::AddShardResponse>, Status> {
        Err(by_command_line())
    }

    async fn drain_shard(
        &self,
        _request: Request<v1::DrainShardRequest>,
    ) -> Result<Response<v1::DrainShardResponse>, Status> {
        Err(by_command_line())
    }

    async fn remove_shard(
        &self,
        _request: Request<v1::RemoveShardRequest>,
    ) -> Result<Response<v1::RemoveShardResponse>, Status> {
        Err(by_command_line())
    }

    async fn move_shard(
        &self,
        _request: Request<v1::MoveShardRequest>,
    ) -> Result<Response<v1::MoveShardResponse>, Status> {
        Err(by_command_line())
    }

    async fn drain_node(
        &self,
        _request: Request<v1::DrainNodeRequest>,
    ) -> Result<Response<v1::DrainNodeResponse>, Status> {
        Err(by_command_line())
    }

    async fn who_am_i(
        &self,
        request: Request<v1::WhoAmIRequest>,
    ) -> Result<Response<v1::WhoAmIResponse>, Status> {
        Ok(Response::new(who_am_i(&*caller(&request)?)))
    }

    async fn list_topics(
        &self,
        request: Request<v1::ListTopicsRequest>,
    ) -> Result<Response<v1::ListTopicsResponse>, Status> {
        let call = Call::of(&request)?;
        answer(topics::list(self, &call, request.into_inner()).await)
    }

    async fn get_topic(
        &self,
        request: Request<v1::GetTopicRequest>,
    ) -> Result<Response<v1::GetTopicResponse>, Status> {
        let call = Call::of(&request)?;
        answer(topics::get(self, &call, request.into_inner()).await)
    }

    async fn pause_topic(
        &self,
        request: Request<v1::PauseTopicRequest>,
    ) -> Result<Response<v1::PauseTopicResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(pauses::pause(self, &call, &caller, request.into_inner()).await)
    }

    async fn resume_topic(
        &self,
        request: Request<v1::ResumeTopicRequest>,
    ) -> Result<Response<v1::ResumeTopicResponse>, Status> {
        let call = Call::of(&request)?;
        answer(pauses::resume(self, &call, request.into_inner()).await)
    }

    async fn list_items(
        &self,
        request: Request<v1::ListItemsRequest>,
    ) -> Result<Response<v1::ListItemsResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(items::list(self, &call, &caller, request.into_inner()).await)
    }

    async fn get_item(
        &self,
        request: Request<v1::GetItemRequest>,
    ) -> Result<Response<v1::GetItemResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(items::get(self, &call, &caller, request.into_inner()).await)
    }

    async fn cancel_items(
        &self,
        request: Request<v1::CancelItemsRequest>,
    ) -> Result<Response<v1::CancelItemsResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(cancel_items::cancel(self, &call, &caller, request.into_inner()).await)
    }

    async fn explain_topic(
        &self,
        request: Request<v1::ExplainTopicRequest>,
    ) -> Result<Response<v1::ExplainTopicResponse>, Status> {
        let call = Call::of(&request)?;
        answer(explain::serve_topic(self, &call, request.into_inner()).await)
    }

    async fn explain_item(
        &self,
        request: Request<v1::ExplainItemRequest>,
    ) -> Result<Response<v1::ExplainItemResponse>, Status> {
        let call = Call::of(&request)?;
        answer(explain::serve_item(self, &call, request.into_inner()).await)
    }

    async fn group_dead_letters(
        &self,
        request: Request<v1::GroupDeadLettersRequest>,
    ) -> Result<Response<v1::GroupDeadLettersResponse>, Status> {
        let call = Call::of(&request)?;
        answer(dead_letters::group(self, &call, request.into_inner()).await)
    }

    async fn start_operation(
        &self,
        request: Request<v1::StartOperationRequest>,
    ) -> Result<Response<v1::StartOperationResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(start_operation::start(self, &call, &caller, request.into_inner()).await)
    }

    async fn get_operation(
        &self,
        request: Request<v1::GetOperationRequest>,
    ) -> Result<Response<v1::GetOperationResponse>, Status> {
        let call = Call::of(&request)?;
        answer(operations::get(self, &call, request.into_inner()).await)
    }

    async fn list_operations(
        &self,
        request: Request<v1::ListOperationsRequest>,
    ) -> Result<Response<v1::ListOperationsResponse>, Status> {
        let call = Call::of(&request)?;
        answer(operations::list(self, &call, request.into_inner()).await)
    }

    async fn cancel_operation(
        &self,
        request: Request<v1::CancelOperationRequest>,
    ) -> Result<Response<v1::CancelOperationResponse>, Status> {
        let call = Call::of(&request)?;
        answer(operations::cancel(self, &call, request.into_inner()).await)
    }

    async fn set_operation_rate(
        &self,
        request: Request<v1::SetOperationRateRequest>,
    ) -> Result<Response<v1::SetOperationRateResponse>, Status> {
        let call = Call::of(&request)?;
        answer(operations::set_rate(self, &call, request.into_inner()).await)
    }
}

fn answer<T>(outcome: Result<T, Refusal>) -> Result<Response<T>, Status> {
    outcome.map(Response::new).map_err(|refusal| status::of_call(&refusal))
}

/// They are not served here yet.
fn by_command_line() -> Status {
    Status::unimplemented(
        "changes of the cluster are made with `forebay shard` and `forebay node` on its catalog",
    )
}

/// A page of a list in order, and the token for the next one.
fn page<T>(
    rows: Vec<T>,
    size: u32,
    is_after: impl Fn(&T) -> bool,
    token: impl Fn(&T) -> String,
) -> (Vec<T>, String) {
    let (default, most) = PAGE_ROWS;
    let size = if size == 0 { default } else { most.min(usize::try_from(size).unwrap_or(most)) };
    let mut rows: Vec<T> = rows.into_iter().filter(is_after).collect();
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(token).unwrap_or_default();
    (rows, next)
}

fn node(node: &Member, is_self: bool) -> v1::Node {
    let state = match node.presence() {
        Presence::Live => NodeState::Live,
        Presence::Joining => NodeState::Joining,
        Presence::Draining => NodeState::Draining,
        Presence::Silent => NodeState::Silent,
    };
    v1::Node {
        name: node.name.clone(),
        clients_address: node.clients_address.clone(),
        peer_address: node.peer_address.clone(),
        http_address: node.http_address.clone(),
        release: node.release.clone(),
        state: state.into(),
        shards: u32::try_from(node.shards).unwrap_or(u32::MAX),
        draining: node.draining,
        started_at: None,
        self_: is_self,
    }
}

/// What every client needs of a node, to reach it.
fn for_clients(node: v1::Node) -> v1::Node {
    let v1::Node { name, clients_address, state, draining, self_, .. } = node;
    v1::Node { name, clients_address, state, draining, self_, ..v1::Node::default() }
}

/// A shard. What is stored in it is known to its owner alone.
fn shard(status: &ShardStatus, home: Option<&ShardHome>, in_cluster: bool, alone: &str) -> v1::Shard {
    let owned = status.state == EngineState::Owned;
    let name = |name: Option<String>| name.unwrap_or_default();
    let state = match home.map(|home| home.state.as_str()) {
        Some("draining") => ShardState::Draining,
        Some("offline") => ShardState::Offline,
        _ => ShardState::Active,
    };
    let hold_up = match home.and_then(|home| home.owner.as_ref()) {
        _ if state != ShardState::Draining => String::new(),
        _ if owned => hold_up(status).to_string(),
        Some(owner) => format!("{owner} owns it, and knows"),
        None => String::new(),
    };
    let owner = match in_cluster {
        true => name(home.and_then(|home| home.owner.as_ref()).map(ToString::to_string)),
        false if owned => alone.to_owned(),
        false => status.owner.clone(),
    };
    v1::Shard {
        id: status.id,
        server: status.server.clone(),
        state: state.into(),
        owner,
        wished_owner: name(home.and_then(|home| home.home.as_ref()).map(ToString::to_string)),
        pinned: home.is_some_and(|home| home.pinned),
        epoch: status.epoch,
        since: None,
        trouble: if owned || status.state == EngineState::Unreachable {
            status.last_error.clone()
        } else {
            String::new()
        },
        items: owned.then(|| status.ready + status.leased + status.scheduled),
        hold_up,
    }
}

/// What holds the drain of a shard up that this node owns.
fn hold_up(status: &ShardStatus) -> HoldUp {
    HoldUp {
        items: status.ready + status.leased + status.scheduled,
        dead_letters: status.dead,
        keys_until: status.keys_until_micros.map(Timestamp::from_micros),
        not_recorded: !status.draining,
        ..HoldUp::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_without_gaps() {
        let rows: Vec<u32> = (1..=250).collect();
        let (mut seen, mut token) = (Vec::new(), 0);
        loop {
            let (rows, next) = page(rows.clone(), 0, |row| *row > token, u32::to_string);
            assert!(rows.len() <= 100);
            seen.extend(rows);
            match next.parse() {
                Ok(next) => token = next,
                Err(_) => break,
            }
        }
        assert_eq!(seen, rows);
        assert_eq!(page(rows, 5_000, |_| true, u32::to_string).0.len(), 250);
    }
}
