//! The listener for other nodes.

use std::{path::PathBuf, sync::Arc, time::Duration};

use forebay_edge::{
    browsers::NoBrowsers,
    traces::{Traces, forwarded},
};
use forebay_engine::{Engine, OwnerAnswer, OwnerQuestion};
use forebay_proto::peer::{
    AckRequest, AskRequest, AskResponse, CatalogChangedRequest, CatalogChangedResponse, ChangeItemsRequest,
    ChangeItemsResponse, CopyCatalogRequest, CopyCatalogResponse, CountBeforeRequest, CountBeforeResponse,
    CountItemsRequest, CountItemsResponse, EnqueueRequest, EnqueueResponse, ExtendLeaseRequest,
    ExtendLeaseResponse, FindKeysRequest, FindKeysResponse, ForgetCountsRequest, ForgetCountsResponse,
    GetStandingRequest, GetStandingResponse, IsReadyForRequest, IsReadyForResponse, LeaseItemsRequest,
    LeaseItemsResponse, ListActiveTopicsRequest, ListActiveTopicsResponse, ListOperationsRequest,
    ListOperationsResponse, ListRecentRequest, ListRecentResponse, NackRequest, OrderOperationRequest,
    OrderOperationResponse, OwnsShardRequest, OwnsShardResponse, PingRequest, PingResponse, SettleResponse,
    WatchTopicsRequest, WatchTopicsResponse,
    peer_service_server::{PeerService, PeerServiceServer},
};
use forebay_types::{Incarnation, ShardId};
use futures_util::{StreamExt as _, stream::BoxStream};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
};
use tonic::{
    Request, Response, Status, Streaming, service::interceptor::InterceptedService, transport::Server,
};

use super::{
    changes,
    connection::PeerListener,
    credentials::{CheckCredentials, Credentials},
    explain, keys, operations, serve_forwarded,
};
use crate::{ask, copy, history::History, watch, wire};

/// Calls of one peer at once.
const CALLS_PER_CONNECTION: u32 = 1_024;
/// The headers of a call: the credentials, and a trace.
const HEADERS_BYTES_MAX: u32 = 8 << 10;
/// How often a connection is checked, and how long the other side may take to answer that.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// The largest call that is passed on: a client's largest request, with the limits at their highest, and what
/// each of its members takes more between nodes.
const MESSAGE_BYTES_MAX: usize = 80 << 20;
/// Bytes of one call, and of all calls on a connection, that may be on their way before they are read.
const WINDOWS: (u32, u32) = (1 << 20, 8 << 20);
/// The calls of clients that are passed on, as their spans name them.
const ENQUEUE: &str = "forebay.peer.v1.PeerService/Enqueue";
const ACK: &str = "forebay.peer.v1.PeerService/Ack";
const NACK: &str = "forebay.peer.v1.PeerService/Nack";
const EXTEND_LEASE: &str = "forebay.peer.v1.PeerService/ExtendLease";

/// Parts that the listener answers from.
pub struct PeerCalls {
    /// Knows what this node owns.
    pub engine: Engine,
    /// Is notified when the catalog has changed.
    pub catalog_changed: Arc<Notify>,
    /// Where the node keeps a copy of the catalog.
    pub catalog_copy: Option<PathBuf>,
    /// How figures were.
    pub history: History,
    /// Begins spans.
    pub traces: Option<Traces>,
}

#[tonic::async_trait]
impl PeerService for PeerCalls {
    async fn owns_shard(
        &self,
        request: Request<OwnsShardRequest>,
    ) -> Result<Response<OwnsShardResponse>, Status> {
        let OwnsShardRequest { shard, epoch, incarnation, server_slow } = request.into_inner();
        let incarnation = <[u8; 16]>::try_from(incarnation.as_ref())
            .map_err(|_| Status::invalid_argument("incarnation must have 16 bytes"))?;
        let incarnation = Incarnation(incarnation);
        let question = OwnerQuestion { shard: ShardId(shard), epoch, incarnation, server_slow };
        let answer = self.engine.owns(question).await;
        let (owns, unsure) = (answer == OwnerAnswer::Owns, answer == OwnerAnswer::Unsure);
        Ok(Response::new(OwnsShardResponse { owns, unsure }))
    }

    async fn is_ready_for(
        &self,
        request: Request<IsReadyForRequest>,
    ) -> Result<Response<IsReadyForResponse>, Status> {
        let id = ShardId(request.into_inner().shard);
        let ready = forebay_membership::is_ready_for(&self.engine, id).await;
        Ok(Response::new(IsReadyForResponse { ready }))
    }

    async fn ping(&self, _request: Request<PingRequest>) -> Result<Response<PingResponse>, Status> {
        Ok(Response::new(PingResponse {}))
    }

    async fn find_keys(
        &self,
        request: Request<FindKeysRequest>,
    ) -> Result<Response<FindKeysResponse>, Status> {
        let question = keys::question(request.into_inner())
            .ok_or_else(|| Status::invalid_argument("keys must have 16 bytes each"))?;
        Ok(Response::new(keys::response(self.engine.find_keys(question).await)))
    }

    async fn catalog_changed(
        &self,
        _request: Request<CatalogChangedRequest>,
    ) -> Result<Response<CatalogChangedResponse>, Status> {
        self.catalog_changed.notify_one();
        Ok(Response::new(CatalogChangedResponse {}))
    }

    type CopyCatalogStream = BoxStream<'static, Result<CopyCatalogResponse, Status>>;

    async fn copy_catalog(
        &self,
        _request: Request<CopyCatalogRequest>,
    ) -> Result<Response<Self::CopyCatalogStream>, Status> {
        copy::copy_catalog(self.catalog_copy.as_deref()).await.map(|parts| Response::new(parts.boxed()))
    }

    type WatchTopicsStream = BoxStream<'static, Result<WatchTopicsResponse, Status>>;

    async fn watch_topics(
        &self,
        request: Request<Streaming<WatchTopicsRequest>>,
    ) -> Result<Response<Self::WatchTopicsStream>, Status> {
        Ok(Response::new(watch::reports(self.engine.clone(), request.into_inner())))
    }

    async fn enqueue(&self, request: Request<EnqueueRequest>) -> Result<Response<EnqueueResponse>, Status> {
        let (metadata, _, message) = request.into_parts();
        let served = serve_forwarded::enqueue(&self.engine, message);
        forwarded(self.traces.as_ref(), ENQUEUE, &metadata, served).await.map(Response::new)
    }

    async fn ack(&self, request: Request<AckRequest>) -> Result<Response<SettleResponse>, Status> {
        let (metadata, _, message) = request.into_parts();
        let served = async { Ok(serve_forwarded::ack(&self.engine, message).await) };
        forwarded(self.traces.as_ref(), ACK, &metadata, served).await.map(Response::new)
    }

    async fn nack(&self, request: Request<NackRequest>) -> Result<Response<SettleResponse>, Status> {
        let (metadata, _, message) = request.into_parts();
        let served = serve_forwarded::nack(&self.engine, message);
        forwarded(self.traces.as_ref(), NACK, &metadata, served).await.map(Response::new)
    }

    async fn extend_lease(
        &self,
        request: Request<ExtendLeaseRequest>,
    ) -> Result<Response<ExtendLeaseResponse>, Status> {
        let (metadata, _, message) = request.into_parts();
        let served = serve_forwarded::extend_lease(&self.engine, message);
        forwarded(self.traces.as_ref(), EXTEND_LEASE, &metadata, served).await.map(Response::new)
    }

    async fn lease_items(
        &self,
        request: Request<LeaseItemsRequest>,
    ) -> Result<Response<LeaseItemsResponse>, Status> {
        serve_forwarded::lease_items(&self.engine, request.into_inner()).await.map(Response::new)
    }

    async fn list_active_topics(
        &self,
        request: Request<ListActiveTopicsRequest>,
    ) -> Result<Response<ListActiveTopicsResponse>, Status> {
        let answer = self.engine.active_topics(wire::active_topics_call(request.into_inner())).await;
        Ok(Response::new(wire::active_topics_response(answer)))
    }

    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        ask::ask(&self.engine, &self.history, request.into_inner()).await.map(Response::new)
    }

    async fn list_recent(
        &self,
        request: Request<ListRecentRequest>,
    ) -> Result<Response<ListRecentResponse>, Status> {
        Ok(Response::new(self.history.recent(request.into_inner())))
    }

    async fn forget_counts(
        &self,
        request: Request<ForgetCountsRequest>,
    ) -> Result<Response<ForgetCountsResponse>, Status> {
        ask::forget_counts(&self.engine, request.into_inner()).await.map(Response::new)
    }

    async fn list_operations(
        &self,
        request: Request<ListOperationsRequest>,
    ) -> Result<Response<ListOperationsResponse>, Status> {
        operations::list_operations(&self.engine, request.into_inner()).await.map(Response::new)
    }

    async fn count_items(
        &self,
        request: Request<CountItemsRequest>,
    ) -> Result<Response<CountItemsResponse>, Status> {
        operations::count_items(&self.engine, request.into_inner()).await.map(Response::new)
    }

    async fn order_operation(
        &self,
        request: Request<OrderOperationRequest>,
    ) -> Result<Response<OrderOperationResponse>, Status> {
        operations::order_operation(&self.engine, request.into_inner()).await.map(Response::new)
    }

    async fn get_standing(
        &self,
        request: Request<GetStandingRequest>,
    ) -> Result<Response<GetStandingResponse>, Status> {
        explain::get_standing(&self.engine, request.into_inner()).await.map(Response::new)
    }

    async fn count_before(
        &self,
        request: Request<CountBeforeRequest>,
    ) -> Result<Response<CountBeforeResponse>, Status> {
        explain::count_before(&self.engine, request.into_inner()).await.map(Response::new)
    }

    async fn change_items(
        &self,
        request: Request<ChangeItemsRequest>,
    ) -> Result<Response<ChangeItemsResponse>, Status> {
        changes::change_items(&self.engine, request.into_inner()).await.map(Response::new)
    }
}

/// A running listener.
pub struct PeerServer {
    /// Starts the shutdown.
    shutdown: oneshot::Sender<()>,
    /// Ends when the port is closed and all connections have ended.
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// Serves other nodes of the cluster.
pub fn serve(incoming: PeerListener, credentials: Credentials, calls: PeerCalls) -> PeerServer {
    let service = PeerServiceServer::new(calls).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let service = InterceptedService::new(service, CheckCredentials::new(credentials));
    let router = Server::builder()
        .max_concurrent_streams(CALLS_PER_CONNECTION)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .http2_max_header_list_size(HEADERS_BYTES_MAX)
        .layer(NoBrowsers::at("peer"))
        .add_service(service);
    let (shutdown, closed) = oneshot::channel::<()>();
    let task = tokio::spawn(router.serve_with_incoming_shutdown(incoming, async {
        // A dropped sender means the same as a message.
        let _ = closed.await;
    }));
    PeerServer { shutdown, task }
}

impl PeerServer {
    /// Closes the port, waits up to `timeout` for connections to end, then drops them.
    pub async fn close(self, timeout: Duration) {
        let _ = self.shutdown.send(());
        let mut task = self.task;
        if tokio::time::timeout(timeout, &mut task).await.is_err() {
            task.abort();
        }
    }
}
