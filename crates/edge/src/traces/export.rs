//! Sends spans to the collector, a batch at a time.

use std::{error::Error as _, time::Duration};

use http::HeaderMap;
use opentelemetry_proto::{
    tonic::collector::trace::v1::{ExportTraceServiceRequest, trace_service_client::TraceServiceClient},
    transform::{
        common::tonic::ResourceAttributesWithSchema, trace::tonic::group_spans_by_resource_and_scope,
    },
};
use opentelemetry_sdk::trace::SpanData;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};
use tonic::{Request, Status, metadata::MetadataMap, transport::Channel};

use super::queue::count_dropped;

/// The most spans of one request.
const BATCH_SPANS: usize = 512;
/// Between two requests, so that the next has more than one span.
const PAUSE: Duration = Duration::from_millis(100);
/// The same while the collector does not answer.
const PAUSE_WHILE_DOWN: Duration = Duration::from_secs(1);
/// How long the collector may take.
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// The task that sends spans.
pub struct ExportTask {
    /// Asks it to send what is left.
    stop: oneshot::Sender<()>,
    /// Ends once it has.
    task: JoinHandle<()>,
}

impl ExportTask {
    /// Sends the spans of a queue through a channel.
    pub fn start(
        spans: mpsc::Receiver<SpanData>,
        channel: Channel,
        headers: HeaderMap,
        resource: ResourceAttributesWithSchema,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (client, headers) = (TraceServiceClient::new(channel), MetadataMap::from_headers(headers));
        let collector = Collector { client, headers, resource, dropped: None };
        Self { stop, task: tokio::spawn(collector.follow(spans, stopped)) }
    }

    /// Sends what is left, for `limit` at most.
    pub async fn close(mut self, limit: Duration) {
        let _ = self.stop.send(());
        if timeout(limit, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

/// Takes spans.
struct Collector {
    /// The connection.
    client: TraceServiceClient<Channel>,
    /// Headers that each request carries.
    headers: MetadataMap,
    /// Sender of them: this node.
    resource: ResourceAttributesWithSchema,
    /// How many spans were lost since it last answered. `None`: it does answer.
    dropped: Option<u64>,
}

impl Collector {
    /// Sends spans until `stopped`, and then those that are left.
    async fn follow(mut self, mut spans: mpsc::Receiver<SpanData>, mut stopped: oneshot::Receiver<()>) {
        loop {
            let mut batch = Vec::new();
            let received = tokio::select! {
                received = spans.recv_many(&mut batch, BATCH_SPANS) => received,
                // A node that was dropped stops as well.
                _ = &mut stopped => break,
            };
            if received == 0 {
                return;
            }
            self.send(batch).await;
            let pause = match (self.dropped, received) {
                (Some(_), _) => PAUSE_WHILE_DOWN,
                (None, BATCH_SPANS) => continue,
                (None, _) => PAUSE,
            };
            if timeout(pause, &mut stopped).await.is_ok() {
                break;
            }
        }
        spans.close();
        let mut batch = Vec::new();
        while spans.recv_many(&mut batch, BATCH_SPANS).await > 0 {
            self.send(std::mem::take(&mut batch)).await;
        }
    }

    /// Sends a batch. One that is not taken is dropped: the next ones wait already.
    async fn send(&mut self, batch: Vec<SpanData>) {
        let count = batch.len() as u64;
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let mut request = Request::new(ExportTraceServiceRequest { resource_spans });
        *request.metadata_mut() = self.headers.clone();
        match timeout(TIMEOUT, self.client.export(request)).await {
            Ok(Ok(response)) => {
                let refused = response.into_inner().partial_success.map_or(0, |part| part.rejected_spans);
                count_dropped("refused", u64::try_from(refused).unwrap_or(0));
                self.answered();
            }
            Ok(Err(status)) => self.failed(count, &reason(&status)),
            Err(_) => self.failed(count, &format!("no answer within {TIMEOUT:?}")),
        }
    }

    fn answered(&mut self) {
        if let Some(dropped) = self.dropped.take() {
            tracing::info!("the collector takes spans again; {dropped} spans could not be sent");
        }
    }

    /// The log says it once, however long it lasts.
    fn failed(&mut self, count: u64, why: &str) {
        count_dropped("failed", count);
        if self.dropped.is_none() {
            tracing::warn!("the collector does not take spans, which are dropped until it does: {why}");
        }
        *self.dropped.get_or_insert(0) += count;
    }
}

/// Reason that a status gives, and what caused it.
fn reason(status: &Status) -> String {
    let mut reason = format!("{:?}: {}", status.code(), status.message());
    let mut cause = status.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    reason
}
