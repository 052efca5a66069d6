//! The calls for those who run the cluster.

mod add_shard;
mod apply_settings;
mod audit;
mod cancel_items;
mod change_cluster;
mod cluster;
mod consumers;
mod context;
mod dead_letters;
mod delete_namespace;
mod delete_topic;
mod drain_node;
mod drain_shard;
mod explain;
mod export_settings;
mod greatest;
mod history;
mod items;
mod move_shard;
mod namespaces;
mod operations;
mod pauses;
mod put_namespace;
mod put_topic;
mod remove_items;
mod remove_shard;
mod settings;
mod start_operation;
mod token_end;
mod tokens;
mod topic_walk;
mod topics;
mod update_item;
mod who_am_i;

use forebay_access::Scope;
use forebay_proto::v1::{self, admin_service_server::AdminService};
use forebay_types::Refusal;
use tonic::{Request, Response, Status};

pub use self::{context::Admin, topics::first_in_order};
use forebay_edge::audit::AuditNote;
use forebay_edge::{
    admission::{Call, caller},
    rpc::status,
};

#[tonic::async_trait]
impl AdminService for Admin {
    async fn list_nodes(
        &self,
        request: Request<v1::ListNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        let sees_all = caller(&request)?.may_everywhere(Scope::Observe);
        Ok(Response::new(cluster::nodes(self, sees_all, request.into_inner())))
    }

    async fn list_shards(
        &self,
        request: Request<v1::ListShardsRequest>,
    ) -> Result<Response<v1::ListShardsResponse>, Status> {
        cluster::shards(self, request.into_inner()).await.map(Response::new)
    }

    async fn add_shard(
        &self,
        request: Request<v1::AddShardRequest>,
    ) -> Result<Response<v1::AddShardResponse>, Status> {
        let caller = caller(&request)?;
        answer(add_shard::add(self, &caller, request.into_inner()).await)
    }

    async fn drain_shard(
        &self,
        request: Request<v1::DrainShardRequest>,
    ) -> Result<Response<v1::DrainShardResponse>, Status> {
        let caller = caller(&request)?;
        answer(drain_shard::drain(self, &caller, request.into_inner()).await)
    }

    async fn remove_shard(
        &self,
        request: Request<v1::RemoveShardRequest>,
    ) -> Result<Response<v1::RemoveShardResponse>, Status> {
        let caller = caller(&request)?;
        answer(remove_shard::remove(self, &caller, request.into_inner()).await)
    }

    async fn move_shard(
        &self,
        request: Request<v1::MoveShardRequest>,
    ) -> Result<Response<v1::MoveShardResponse>, Status> {
        let caller = caller(&request)?;
        answer(move_shard::move_to(self, &caller, request.into_inner()).await)
    }

    async fn drain_node(
        &self,
        request: Request<v1::DrainNodeRequest>,
    ) -> Result<Response<v1::DrainNodeResponse>, Status> {
        let caller = caller(&request)?;
        answer(drain_node::drain(self, &caller, request.into_inner()).await)
    }

    async fn who_am_i(
        &self,
        request: Request<v1::WhoAmIRequest>,
    ) -> Result<Response<v1::WhoAmIResponse>, Status> {
        Ok(Response::new(who_am_i::who_am_i(&*caller(&request)?)))
    }

    async fn list_topics(
        &self,
        request: Request<v1::ListTopicsRequest>,
    ) -> Result<Response<v1::ListTopicsResponse>, Status> {
        let call = Call::of(&request)?;
        answer(topics::list(self, &call, request.into_inner()).await)
    }

    async fn list_consumers(
        &self,
        request: Request<v1::ListConsumersRequest>,
    ) -> Result<Response<v1::ListConsumersResponse>, Status> {
        let call = Call::of(&request)?;
        answer(consumers::list(self, &call, request.into_inner()).await)
    }

    async fn get_history(
        &self,
        request: Request<v1::GetHistoryRequest>,
    ) -> Result<Response<v1::GetHistoryResponse>, Status> {
        let call = Call::of(&request)?;
        answer(history::get(self, &call, request.into_inner()).await)
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
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(pauses::resume(self, &call, &caller, request.into_inner()).await)
    }

    async fn put_topic(
        &self,
        request: Request<v1::PutTopicRequest>,
    ) -> Result<Response<v1::PutTopicResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(put_topic::put(self, &call, &caller, request.into_inner()).await)
    }

    async fn delete_topic(
        &self,
        request: Request<v1::DeleteTopicRequest>,
    ) -> Result<Response<v1::DeleteTopicResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        let deleted = delete_topic::delete(self, &call, &caller, request.into_inner()).await;
        let begun = deleted.as_ref().map_or_else(|_| String::new(), |it| it.operation_id.clone());
        noted(answer(deleted), AuditNote { operation_id: begun, ..AuditNote::default() })
    }

    async fn list_namespaces(
        &self,
        request: Request<v1::ListNamespacesRequest>,
    ) -> Result<Response<v1::ListNamespacesResponse>, Status> {
        let call = Call::of(&request)?;
        answer(namespaces::list(self, &call, request.into_inner()).await)
    }

    async fn get_namespace(
        &self,
        request: Request<v1::GetNamespaceRequest>,
    ) -> Result<Response<v1::GetNamespaceResponse>, Status> {
        let call = Call::of(&request)?;
        answer(namespaces::get(self, &call, request.into_inner()).await)
    }

    async fn put_namespace(
        &self,
        request: Request<v1::PutNamespaceRequest>,
    ) -> Result<Response<v1::PutNamespaceResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(put_namespace::put(self, &call, &caller, request.into_inner()).await)
    }

    async fn delete_namespace(
        &self,
        request: Request<v1::DeleteNamespaceRequest>,
    ) -> Result<Response<v1::DeleteNamespaceResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(delete_namespace::delete(self, &call, &caller, request.into_inner()).await)
    }

    async fn export_settings(
        &self,
        request: Request<v1::ExportSettingsRequest>,
    ) -> Result<Response<v1::ExportSettingsResponse>, Status> {
        let call = Call::of(&request)?;
        answer(export_settings::export(self, &call, request.into_inner()).await)
    }

    async fn apply_settings(
        &self,
        request: Request<v1::ApplySettingsRequest>,
    ) -> Result<Response<v1::ApplySettingsResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(apply_settings::apply(self, &call, &caller, request.into_inner()).await)
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

    async fn update_item(
        &self,
        request: Request<v1::UpdateItemRequest>,
    ) -> Result<Response<v1::UpdateItemResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(update_item::update(self, &call, &caller, request.into_inner()).await)
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
        let started = start_operation::start(self, &call, &caller, request.into_inner()).await;
        let begun = started.as_ref().ok().and_then(|it| it.operation.as_ref()).map(|it| it.id.clone());
        let note = AuditNote { operation_id: begun.unwrap_or_default(), ..AuditNote::default() };
        noted(answer(started), note)
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

    async fn list_audit_records(
        &self,
        request: Request<v1::ListAuditRecordsRequest>,
    ) -> Result<Response<v1::ListAuditRecordsResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(audit::list(self, &call, &caller, request.into_inner()).await)
    }

    async fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Result<Response<v1::CreateTokenResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        let made = tokens::create(self, &call, &caller, request.into_inner()).await;
        let id = made.as_ref().ok().and_then(|it| it.token.as_ref()).map(|it| it.id.clone());
        noted(answer(made), AuditNote { target: id.unwrap_or_default(), ..AuditNote::default() })
    }

    async fn list_tokens(
        &self,
        request: Request<v1::ListTokensRequest>,
    ) -> Result<Response<v1::ListTokensResponse>, Status> {
        let call = Call::of(&request)?;
        answer(tokens::list(self, &call, request.into_inner()).await)
    }

    async fn rotate_token(
        &self,
        request: Request<v1::RotateTokenRequest>,
    ) -> Result<Response<v1::RotateTokenResponse>, Status> {
        let (call, caller) = (Call::of(&request)?, caller(&request)?);
        answer(tokens::rotate(self, &call, &caller, request.into_inner()).await)
    }

    async fn revoke_token(
        &self,
        request: Request<v1::RevokeTokenRequest>,
    ) -> Result<Response<v1::RevokeTokenResponse>, Status> {
        let call = Call::of(&request)?;
        answer(tokens::revoke(self, &call, request.into_inner()).await)
    }
}

fn answer<T>(outcome: Result<T, Refusal>) -> Result<Response<T>, Status> {
    outcome.map(Response::new).map_err(|refusal| status::of_call(&refusal))
}

/// The same, with what its audit record says beside the request.
fn noted<T>(answer: Result<Response<T>, Status>, note: AuditNote) -> Result<Response<T>, Status> {
    answer.map(|mut response| {
        response.extensions_mut().insert(note);
        response
    })
}
