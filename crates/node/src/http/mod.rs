//! HTTP for operators: the page, the metrics, and what probes ask. It shows all tenants, so it belongs on a
//! port that only operators reach.

pub mod metrics;
mod page;
mod probes;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Json, Router, http::StatusCode, response::IntoResponse, routing::get};
use forebay_engine::{Engine, Status};
use forebay_types::{Clock, Timestamp};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::grpc::Load;

/// What the pages tell of.
pub struct Facts {
    /// Knows shards and topics.
    pub engine: Engine,
    /// What the gRPC server has taken on.
    pub load: Arc<Load>,
    /// Where gRPC is served.
    pub grpc: SocketAddr,
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Where other nodes reach this one.
    pub address: String,
    /// When the node started.
    pub started: Timestamp,
    /// The time of the pages.
    pub clock: Arc<dyn Clock>,
    /// Ready, and not stopping.
    pub serving: AtomicBool,
    /// Keeps the metrics.
    pub recorder: PrometheusHandle,
}

/// What `/status.json` says.
#[derive(Serialize)]
pub struct NodeStatus {
    /// The program's version.
    pub version: &'static str,
    /// Where other nodes reach this one.
    pub address: String,
    /// Where gRPC is served.
    pub grpc: SocketAddr,
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Ready, and not stopping.
    pub serving: bool,
    /// When it started, in microseconds since the Unix epoch.
    pub started_micros: i64,
    /// How long ago that was, in seconds.
    pub uptime_seconds: u64,
    /// Calls at work.
    pub calls: usize,
    /// Bytes of requests in memory.
    pub request_bytes: usize,
    /// What the engine says; `None` once it has stopped.
    pub engine: Option<Status>,
}

impl Facts {
    /// Everything as of now.
    pub async fn status(&self) -> NodeStatus {
        NodeStatus {
            version: env!("CARGO_PKG_VERSION"),
            address: self.address.clone(),
            grpc: self.grpc,
            http: self.http,
            serving: self.serving.load(Ordering::Acquire),
            started_micros: self.started.as_micros(),
            uptime_seconds: self.clock.wall().since(self.started).as_secs(),
            calls: self.load.working.taken(),
            request_bytes: self.load.request_bytes.taken(),
            engine: self.engine.status().await,
        }
    }
}

/// An HTTP server that runs.
pub struct HttpServing {
    shut: oneshot::Sender<()>,
    task: JoinHandle<()>,
    upkeep: JoinHandle<()>,
}

/// Serves the pages.
pub fn serve(listener: TcpListener, facts: Arc<Facts>) -> HttpServing {
    let upkeep = tokio::spawn(metrics::upkeep(facts.recorder.clone()));
    let router = Router::new()
        .route("/", get(page::page))
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(probes::alive))
        .route("/readyz", get(probes::ready))
        .route("/status.json", get(status))
        .with_state(facts);
    let (shut, closed) = oneshot::channel::<()>();
    let server = axum::serve(listener, router).with_graceful_shutdown(async {
        // A sender that is gone means the same as one that sent.
        let _ = closed.await;
    });
    let task = tokio::spawn(async {
        if let Err(error) = server.await {
            tracing::error!(%error, "the HTTP server failed");
        }
    });
    HttpServing { shut, task, upkeep }
}

impl HttpServing {
    /// Closes the port, and cuts what is still open after `patience`.
    pub async fn close(self, patience: Duration) {
        self.upkeep.abort();
        let _ = self.shut.send(());
        let mut task = self.task;
        if tokio::time::timeout(patience, &mut task).await.is_err() {
            task.abort();
        }
    }
}

type State = axum::extract::State<Arc<Facts>>;

async fn status(state: State) -> impl IntoResponse {
    (StatusCode::OK, Json(state.status().await))
}
