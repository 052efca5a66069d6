//! The listener for other nodes.

use std::{sync::Arc, time::Duration};

use forebay_engine::{Engine, OwnerQuestion};
use forebay_proto::peer::{
    CatalogChangedRequest, CatalogChangedResponse, IsReadyForRequest, IsReadyForResponse, OwnsShardRequest,
    OwnsShardResponse,
    peer_service_server::{PeerService, PeerServiceServer},
};
use forebay_types::{Incarnation, ShardId};
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot},
    task::JoinHandle,
};
use tonic::{
    Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

use super::credentials::{CheckCredentials, Credentials};

/// Calls of one peer at once.
const CALLS_PER_CONNECTION: u32 = 1_024;
/// How often a connection is checked, and how long the other side may take to answer that.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// What the listener answers from.
struct PeerCalls {
    /// Knows what this node owns.
    engine: Engine,
    /// Is notified when the catalog has changed.
    catalog_changed: Arc<Notify>,
}

#[tonic::async_trait]
impl PeerService for PeerCalls {
    async fn owns_shard(
        &self,
        request: Request<OwnsShardRequest>,
    ) -> Result<Response<OwnsShardResponse>, Status> {
        let OwnsShardRequest { shard, epoch, incarnation } = request.into_inner();
        let incarnation = <[u8; 16]>::try_from(incarnation.as_ref())
            .map_err(|_| Status::invalid_argument("incarnation must have 16 bytes"))?;
        let question = OwnerQuestion { shard: ShardId(shard), epoch, incarnation: Incarnation(incarnation) };
        Ok(Response::new(OwnsShardResponse { owns: self.engine.owns(question).await }))
    }

    async fn is_ready_for(
        &self,
        request: Request<IsReadyForRequest>,
    ) -> Result<Response<IsReadyForResponse>, Status> {
        let id = ShardId(request.into_inner().shard);
        let sights = self.engine.sights().await.unwrap_or_default();
        let ready = sights.iter().any(|sight| sight.id == id && sight.wanted && sight.answers);
        Ok(Response::new(IsReadyForResponse { ready }))
    }

    async fn catalog_changed(
        &self,
        _request: Request<CatalogChangedRequest>,
    ) -> Result<Response<CatalogChangedResponse>, Status> {
        self.catalog_changed.notify_one();
        Ok(Response::new(CatalogChangedResponse {}))
    }
}

/// A running listener.
pub struct PeerServing {
    /// Starts the shutdown.
    shutdown: oneshot::Sender<()>,
    /// Ends when the port is closed and all connections have ended.
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// Serves other nodes of the cluster.
pub fn serve(
    listener: TcpListener,
    engine: Engine,
    credentials: Credentials,
    catalog_changed: Arc<Notify>,
) -> PeerServing {
    let calls = PeerCalls { engine, catalog_changed };
    let service = PeerServiceServer::with_interceptor(calls, CheckCredentials(credentials));
    let router = Server::builder()
        .max_concurrent_streams(CALLS_PER_CONNECTION)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .tcp_nodelay(true)
        .add_service(service);
    let (shutdown, closed) = oneshot::channel::<()>();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let task = tokio::spawn(router.serve_with_incoming_shutdown(incoming, async {
        // A dropped sender means the same as a message.
        let _ = closed.await;
    }));
    PeerServing { shutdown, task }
}

impl PeerServing {
    /// Closes the port, waits up to `timeout` for connections to end, then drops them.
    pub async fn close(self, timeout: Duration) {
        let _ = self.shutdown.send(());
        let mut task = self.task;
        if tokio::time::timeout(timeout, &mut task).await.is_err() {
            task.abort();
        }
    }
}
