//! The HTTP server and its routes.

use std::{sync::Arc, time::Duration};

use axum::{Json, Router, routing::get};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use super::{
    info::{NodeInfo, NodeStatus, State},
    metrics, page, probes,
};

/// A running HTTP server.
pub struct HttpServing {
    /// Starts the graceful shutdown.
    shutdown: oneshot::Sender<()>,
    /// Ends when the port is closed and all connections have ended.
    task: JoinHandle<()>,
    /// Moves metric samples into their buckets; aborted at the end.
    upkeep: JoinHandle<()>,
}

/// Serves the pages.
pub fn serve(listener: TcpListener, info: Arc<NodeInfo>) -> HttpServing {
    let upkeep = tokio::spawn(metrics::upkeep(info.recorder.clone()));
    let router = Router::new()
        .route("/", get(page::page))
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(probes::alive))
        .route("/readyz", get(probes::ready))
        .route("/status.json", get(status))
        .with_state(info);
    let (shutdown, closed) = oneshot::channel::<()>();
    let server = axum::serve(listener, router).with_graceful_shutdown(async {
        // A dropped sender means the same as a message.
        let _ = closed.await;
    });
    let task = tokio::spawn(async {
        if let Err(error) = server.await {
            tracing::error!(%error, "HTTP server failed");
        }
    });
    HttpServing { shutdown, task, upkeep }
}

impl HttpServing {
    /// Closes the port, waits up to `timeout` for connections to end, then drops them.
    pub async fn close(self, timeout: Duration) {
        self.upkeep.abort();
        let _ = self.shutdown.send(());
        let mut task = self.task;
        if tokio::time::timeout(timeout, &mut task).await.is_err() {
            task.abort();
        }
    }
}

async fn status(state: State) -> Json<NodeStatus> {
    Json(state.status().await)
}
