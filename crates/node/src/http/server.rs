//! The HTTP server and its routes.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{Json, Router, routing::get};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{
    info::{NodeInfo, NodeStatus, State},
    metrics, page, probes,
};
use crate::connections::{ConnectionCap, count_closed};

/// Pause after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Of the head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// A connection is closed after this time, between two requests. Operators' tools connect again.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(60);
/// How long the last answer of a connection may take.
const LAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

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
pub fn serve(listener: TcpListener, info: Arc<NodeInfo>, header_timeout: Duration) -> HttpServing {
    let upkeep = tokio::spawn(metrics::upkeep(info.recorder.clone()));
    let cap = info.http_connections.clone();
    let router = Router::new()
        .route("/", get(page::page))
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(probes::alive))
        .route("/readyz", get(probes::ready))
        .route("/status.json", get(status))
        .with_state(info);
    let (shutdown, closed) = oneshot::channel::<()>();
    let task = tokio::spawn(accept(listener, router, cap, header_timeout, closed));
    HttpServing { shutdown, task, upkeep }
}

/// Accepts connections until `closed`, then waits for them to end.
async fn accept(
    listener: TcpListener,
    router: Router,
    cap: Arc<ConnectionCap>,
    header_timeout: Duration,
    mut closed: oneshot::Receiver<()>,
) {
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            // A dropped sender means the same as a message.
            _ = &mut closed => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            // Over the cap it is closed here.
            Ok((stream, _)) => {
                let Some(open) = cap.open() else { continue };
                let connection = connection(stream, router.clone(), header_timeout, stopped.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(open);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection; retrying");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop((listener, stop));
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn connection(
    stream: TcpStream,
    router: Router,
    header_timeout: Duration,
    mut stopped: watch::Receiver<()>,
) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = &mut served => Some(ended),
        // The sender is dropped when the port is closed.
        _ = stopped.changed() => None,
        () = sleep(CONNECTION_AGE_MAX) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            served.as_mut().graceful_shutdown();
            // Who does not read its last answer is cut off.
            timeout(LAST_ANSWER_TIMEOUT, served).await.unwrap_or(Ok(()))
        }
    };
    if ended.is_err_and(|error| error.is_timeout()) {
        count_closed("http", "handshake");
    }
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
