//! A running node.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use forebay_access::Grant;
use forebay_edge::{access::FollowTask, tls::ReloadTask, traces::ExportTask};
use forebay_engine::Engine;
use forebay_operators::cluster::Member;
use forebay_web::{HttpServer, NodeInfo};
use tokio::task::JoinHandle;

use crate::grpc::GrpcServer;

/// A running node. It runs until it is passed to `stop`.
pub struct Node {
    /// Stopped before the servers, so that it can still answer calls.
    pub(crate) engine: Engine,
    /// Closed once the engine has answered.
    pub(crate) grpc: GrpcServer,
    /// Closed last, so that operators see the shutdown.
    pub(crate) http: HttpServer,
    /// Holds the addresses, and the flag that `/readyz` answers.
    pub(crate) info: Arc<NodeInfo>,
    /// Keeps the flag and the health checks true to what is served.
    pub(crate) readiness: JoinHandle<()>,
    /// Tasks that see to operations whose home shards it owns, to history and to old records.
    pub(crate) tasks: Vec<JoinHandle<()>>,
    /// The node's part in its cluster.
    pub(crate) member: Member,
    /// Follows the files of the certificates.
    pub(crate) reloading: ReloadTask,
    /// Follows the file of tokens. `None`: there is no access control.
    pub(crate) following: Option<FollowTask>,
    /// Sends spans. `None`: there are none.
    pub(crate) exporting: Option<ExportTask>,
    /// How long a stopping node still serves while load balancers notice.
    pub(crate) drain: Duration,
}

impl Node {
    /// The bound gRPC address.
    pub fn grpc(&self) -> SocketAddr {
        self.info.grpc
    }

    /// The bound HTTP address.
    pub fn http(&self) -> SocketAddr {
        self.info.http
    }

    /// Looks at the files of certificates and tokens now, not only when it is time to.
    pub fn look_at_files(&self) {
        self.reloading.look_now();
        self.following.iter().for_each(FollowTask::look_now);
    }

    /// Takes what a configuration that was read again says of the certificates of clients. The rest of it is
    /// in use after a restart.
    pub fn set_certificates(&self, certificates: Vec<(String, Vec<Grant>)>) {
        match &self.following {
            Some(following) => following.set_certificates(certificates),
            None if certificates.is_empty() => {}
            None => tracing::warn!(
                "[[access.certificate]] is in use after a restart: this node has no access control"
            ),
        }
    }

    /// Waits until a task of the engine panics: the process is of no use any more. Returns what the task
    /// said.
    pub async fn failed(&self) -> String {
        self.engine.failed().await
    }

    /// Waits until calls reach a shard.
    pub async fn ready(&self) {
        // The sender is in the same value: it is not gone.
        let _ = self.info.serving.subscribe().wait_for(|serving| *serving).await;
    }
}
