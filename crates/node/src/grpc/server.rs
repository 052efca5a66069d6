//! The gRPC server: its settings, and what it serves beside the queue.

use std::{sync::Arc, time::Duration};

use forebay_proto::{FILE_DESCRIPTOR_SET, SERVICE, v1::queue_service_server::QueueServiceServer};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tonic::transport::Server;
use tonic_health::{ServingStatus, server::HealthReporter};

use super::{
    Queue,
    connection::Incoming,
    gate::{GateLayer, Load, LoadLimits},
};

/// Room for what a request of legal size carries beside its items.
const DECODE_HEADROOM: usize = 64 << 10;
/// The largest answer: 15 MiB of items and what goes with them.
const ENCODE_LIMIT: usize = 16 << 20;

/// A gRPC server that runs.
pub struct Serving {
    health: HealthReporter,
    load: Arc<Load>,
    shut: oneshot::Sender<()>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// Why the server could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("reflection can't be served: {0}")]
pub struct ReflectionError(#[from] tonic_reflection::server::Error);

/// Serves the queue, health and reflection on one port. Health says not serving until told otherwise.
pub async fn serve(
    listener: TcpListener,
    queue: Queue,
    limits: LoadLimits,
) -> Result<Serving, ReflectionError> {
    let load = Arc::new(Load::new(&limits));
    let decode = queue.rules.limits.request_bytes + DECODE_HEADROOM;
    let queue = QueueServiceServer::new(queue)
        .max_decoding_message_size(decode)
        .max_encoding_message_size(ENCODE_LIMIT);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let (health, health_service) = tonic_health::server::health_reporter();
    set_health(&health, ServingStatus::NotServing).await;

    let router = Server::builder()
        .max_concurrent_streams(1_024)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .http2_max_local_error_reset_streams(Some(1_024))
        .http2_max_pending_accept_reset_streams(Some(20))
        .http2_max_header_list_size(8 << 10)
        .layer(GateLayer { load: load.clone() })
        .add_service(queue)
        .add_service(health_service)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);
    let (shut, closed) = oneshot::channel::<()>();
    let incoming = Incoming::new(listener, limits);
    let task = tokio::spawn(router.serve_with_incoming_shutdown(incoming, async {
        // A sender that is gone means the same as one that sent.
        let _ = closed.await;
    }));
    Ok(Serving { health, load, shut, task })
}

impl Serving {
    /// What health checks answer from now on.
    pub async fn set_serving(&self, serving: bool) {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        set_health(&self.health, status).await;
    }

    /// What the server has taken on.
    pub fn load(&self) -> &Arc<Load> {
        &self.load
    }

    /// Closes the port, lets connections end by themselves for `patience`, then cuts them.
    pub async fn close(self, patience: Duration) {
        let _ = self.shut.send(());
        let mut task = self.task;
        if tokio::time::timeout(patience, &mut task).await.is_err() {
            // Clients that keep their connections open are cut with the process.
            task.abort();
        }
    }
}

async fn set_health(health: &HealthReporter, status: ServingStatus) {
    health.set_service_status("", status).await;
    health.set_service_status(SERVICE, status).await;
}
