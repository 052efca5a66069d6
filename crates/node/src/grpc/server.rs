//! The gRPC server: its settings, and what it serves beside the queue.

use std::{sync::Arc, time::Duration};

use forebay_edge::{
    access::Access,
    admission::{
        AdmissionContext, AdmissionListener, AdmissionLoad, Calls, LoadLimits, RequestBounds, around,
    },
    audit::Auditor,
    browsers::NoBrowsers,
    connections::PlaceRules,
    tls::{HandshakeConfig, Listener, Source},
    traces::Traces,
};
use forebay_operators::calls::Admin;
use forebay_proto::{
    FILE_DESCRIPTOR_SET, SERVICE,
    v1::{admin_service_server::AdminServiceServer, queue_service_server::QueueServiceServer},
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tonic::{service::Routes, transport::Server};
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::{Layer as _, layer::layer_fn};

use super::queue::Queue;

/// Added to the decode limit, so that the field check refuses a request that is slightly too large.
const DECODE_HEADROOM_BYTES: usize = 64 << 10;
/// Fields that a member has at most, beside its headers.
const FIELDS: usize = 16;
/// The largest response: 15 MiB of items and their encoding.
const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// A running gRPC server.
pub struct GrpcServer {
    /// Sets what health checks answer.
    health: Health,
    /// Read by the pages and metrics.
    load: Arc<AdmissionLoad>,
    /// Service of the port, for callers that come another way.
    calls: Calls,
    /// Starts the graceful shutdown.
    shutdown: oneshot::Sender<()>,
    /// Ends when the port is closed and all connections have ended.
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// Sets what health checks answer.
#[derive(Clone)]
pub struct Health(HealthReporter);

impl Health {
    /// Sets it for the whole node, and for its service.
    pub async fn set(&self, serving: bool) {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        self.0.set_service_status("", status).await;
        self.0.set_service_status(SERVICE, status).await;
    }
}

/// Why the server could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up gRPC reflection: {0}")]
pub struct ReflectionError(#[from] tonic_reflection::server::Error);

/// Layers around every call.
pub struct Layers {
    /// Access control.
    pub access: Arc<Access>,
    /// The audit log.
    pub audit: Arc<Auditor>,
    /// The spans, if there are any.
    pub traces: Option<Traces>,
}

/// Serves the queue, what is known of the cluster, health and reflection on one port, with TLS or without.
/// Health checks answer not serving at first.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Source>,
    queue: Queue,
    admin: Admin,
    limits: LoadLimits,
    rules: PlaceRules,
    layers: Layers,
) -> Result<GrpcServer, ReflectionError> {
    let load = Arc::new(AdmissionLoad::with(&limits, &rules));
    let decode = queue.rules.limits.request_bytes + DECODE_HEADROOM_BYTES;
    // Enough room for a message to be refused with the name of its field.
    let members = 2 * queue.rules.limits.members + 100;
    let values = members * (FIELDS + queue.rules.limits.headers);
    let bounds = RequestBounds { bytes: decode, members, values };
    let reported = queue.engine.reported_namespaces().clone();
    let queue = QueueServiceServer::new(queue)
        .max_decoding_message_size(decode)
        .max_encoding_message_size(RESPONSE_BYTES_MAX);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let (health, health_service) = tonic_health::server::health_reporter();
    let health = Health(health);
    health.set(false).await;

    let routes = Routes::new(queue)
        .add_service(AdminServiceServer::new(admin))
        .add_service(health_service)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?)
        .prepare();
    let Layers { access, audit, traces } = layers;
    let context = Arc::new(AdmissionContext { load: load.clone(), bounds, reported, audit });
    let admission = layer_fn(move |routes| around(routes, &access, traces.as_ref(), &context));
    let calls = admission.layer(routes.clone());
    let router = Server::builder()
        .max_concurrent_streams(1_024)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .http2_max_local_error_reset_streams(Some(1_024))
        .http2_max_pending_accept_reset_streams(Some(20))
        .http2_max_header_list_size(8 << 10)
        .layer(NoBrowsers::at("grpc"))
        .layer(admission)
        .add_routes(routes);
    let (shutdown, closed) = oneshot::channel::<()>();
    let beginning = HandshakeConfig { tls, http2: true, limit: limits.timeouts.handshake };
    let listener = Listener::new(listener, load.connections.clone(), beginning);
    let incoming = AdmissionListener::new(listener, load.clone());
    let task = tokio::spawn(router.serve_with_incoming_shutdown(incoming, async {
        // A dropped sender means the same as a message.
        let _ = closed.await;
    }));
    Ok(GrpcServer { health, load, calls, shutdown, task })
}

impl GrpcServer {
    /// Sets what health checks answer.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The load that the server has taken on, for the pages and metrics.
    pub fn load(&self) -> &Arc<AdmissionLoad> {
        &self.load
    }

    /// Every call, for callers that come another way.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Closes the port, waits up to `timeout` for connections to end, then drops them.
    pub async fn close(self, timeout: Duration) {
        let _ = self.shutdown.send(());
        let mut task = self.task;
        if tokio::time::timeout(timeout, &mut task).await.is_err() {
            // Idle clients keep their connections open; those end here.
            task.abort();
        }
    }
}
