//! The calls for those who run the cluster.

mod add_shard;
mod apply_settings;
mod audit;
mod cancel_items;
mod change_cluster;
mod cluster;
mod consumers;
mod context;
mod ctx;
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

use forebay_proto::v1::{self, admin_service_server::AdminService};
use tonic::{Request, Response, Status};

use self::ctx::Ctx;
pub use self::{context::Admin, topics::first_in_order};

/// Has each call served by a function, which takes what the node knows, the call and its request.
macro_rules! serve {
    ($($name:ident: $request:ident -> $response:ident = $handler:path,)*) => {
        #[tonic::async_trait]
        impl AdminService for Admin {
            $(async fn $name(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                let ctx = Ctx::of(&request)?;
                let outcome = $handler(self, &ctx, request.into_inner()).await;
                ctx.answer(outcome)
            })*
        }
    };
}

serve! {
    list_nodes: ListNodesRequest -> ListNodesResponse = cluster::nodes,
    list_shards: ListShardsRequest -> ListShardsResponse = cluster::shards,
    add_shard: AddShardRequest -> AddShardResponse = add_shard::add,
    drain_shard: DrainShardRequest -> DrainShardResponse = drain_shard::drain,
    remove_shard: RemoveShardRequest -> RemoveShardResponse = remove_shard::remove,
    move_shard: MoveShardRequest -> MoveShardResponse = move_shard::move_to,
    drain_node: DrainNodeRequest -> DrainNodeResponse = drain_node::drain,
    who_am_i: WhoAmIRequest -> WhoAmIResponse = who_am_i::who_am_i,
    list_topics: ListTopicsRequest -> ListTopicsResponse = topics::list,
    list_consumers: ListConsumersRequest -> ListConsumersResponse = consumers::list,
    get_history: GetHistoryRequest -> GetHistoryResponse = history::get,
    get_topic: GetTopicRequest -> GetTopicResponse = topics::get,
    pause_topic: PauseTopicRequest -> PauseTopicResponse = pauses::pause,
    resume_topic: ResumeTopicRequest -> ResumeTopicResponse = pauses::resume,
    put_topic: PutTopicRequest -> PutTopicResponse = put_topic::put,
    delete_topic: DeleteTopicRequest -> DeleteTopicResponse = delete_topic::delete,
    list_namespaces: ListNamespacesRequest -> ListNamespacesResponse = namespaces::list,
    get_namespace: GetNamespaceRequest -> GetNamespaceResponse = namespaces::get,
    put_namespace: PutNamespaceRequest -> PutNamespaceResponse = put_namespace::put,
    delete_namespace: DeleteNamespaceRequest -> DeleteNamespaceResponse = delete_namespace::delete,
    export_settings: ExportSettingsRequest -> ExportSettingsResponse = export_settings::export,
    apply_settings: ApplySettingsRequest -> ApplySettingsResponse = apply_settings::apply,
    list_items: ListItemsRequest -> ListItemsResponse = items::list,
    get_item: GetItemRequest -> GetItemResponse = items::get,
    cancel_items: CancelItemsRequest -> CancelItemsResponse = cancel_items::cancel,
    update_item: UpdateItemRequest -> UpdateItemResponse = update_item::update,
    explain_topic: ExplainTopicRequest -> ExplainTopicResponse = explain::serve_topic,
    explain_item: ExplainItemRequest -> ExplainItemResponse = explain::serve_item,
    group_dead_letters: GroupDeadLettersRequest -> GroupDeadLettersResponse = dead_letters::group,
    start_operation: StartOperationRequest -> StartOperationResponse = start_operation::start,
    get_operation: GetOperationRequest -> GetOperationResponse = operations::get,
    list_operations: ListOperationsRequest -> ListOperationsResponse = operations::list,
    cancel_operation: CancelOperationRequest -> CancelOperationResponse = operations::cancel,
    set_operation_rate: SetOperationRateRequest -> SetOperationRateResponse = operations::set_rate,
    list_audit_records: ListAuditRecordsRequest -> ListAuditRecordsResponse = audit::list,
    create_token: CreateTokenRequest -> CreateTokenResponse = tokens::create,
    list_tokens: ListTokensRequest -> ListTokensResponse = tokens::list,
    rotate_token: RotateTokenRequest -> RotateTokenResponse = tokens::rotate,
    revoke_token: RevokeTokenRequest -> RevokeTokenResponse = tokens::revoke,
}
