//! A producer that sends items in batches.

mod batcher;
mod config;
mod run;

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use forebay_proto::v1;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tonic::Code;

use crate::{
    calls::enqueue::EnqueuedItem, client::Client, error::Error, item::NewItem, trace_config::TraceConfig,
    traces,
};
use batcher::QueuedItem;
pub use config::ProducerConfig;

/// Sends items in batches, to one server while that works. Cheap to clone. The clones share one buffer. After
/// the last clone is dropped, the buffer is still sent while the runtime runs. [`Producer::close`] waits for
/// that.
#[derive(Debug, Clone)]
pub struct Producer(Arc<ProducerState>);

#[derive(Debug)]
struct ProducerState {
    queue: mpsc::UnboundedSender<QueuedItem>,
    /// One permit a buffered item.
    items: Arc<Semaphore>,
    /// One permit a buffered byte.
    bytes: Arc<Semaphore>,
    /// Ends a linger.
    flush: Arc<Notify>,
    config: ProducerConfig,
    /// Which spans items have.
    traces: TraceConfig,
}

impl Producer {
    /// Starts a producer. Must be called inside a Tokio runtime.
    pub fn start(client: Client, config: ProducerConfig) -> Self {
        const PERMITS_MAX: usize = u32::MAX as usize >> 4;
        let config = ProducerConfig {
            buffer_items: config.buffer_items.clamp(1, PERMITS_MAX),
            buffer_bytes: config.buffer_bytes.clamp(1, PERMITS_MAX),
            calls: config.calls.clamp(1, 1_000),
            batch_items: config.batch_items.clamp(1, 1_000),
            batch_bytes: config.batch_bytes.clamp(1, 4 << 20),
            linger: config.linger,
        };
        let (queue, queued) = mpsc::unbounded_channel();
        let (flush, traces) = (Arc::new(Notify::new()), client.config.traces);
        tokio::spawn(run::run(client.in_order(), config, queued, flush.clone()));
        Self(Arc::new(ProducerState {
            queue,
            items: Arc::new(Semaphore::new(config.buffer_items)),
            bytes: Arc::new(Semaphore::new(config.buffer_bytes)),
            flush,
            config,
            traces,
        }))
    }

    /// Adds an item to the buffer, waiting while it is full. The returned [`EnqueueFuture`] resolves to the
    /// answer. It need not be awaited: dropping it does not cancel the item.
    pub async fn send(&self, item: NewItem) -> Result<EnqueueFuture, Error> {
        let mut item = item.into_proto();
        // The caller is known here, and not where the batch is sent. A batch has room for what this adds.
        let span = traces::create(&mut item, self.0.traces);
        span.around(self.queue(item)).await
    }

    async fn queue(&self, item: v1::EnqueueItem) -> Result<EnqueueFuture, Error> {
        let (queued, pending) = QueuedItem::new(item);
        let shared = &*self.0;
        let bytes = u32::try_from(queued.bytes.min(shared.config.buffer_bytes)).unwrap_or(u32::MAX);
        let permits = (
            shared.items.clone().acquire_owned().await.map_err(|_| closed())?,
            shared.bytes.clone().acquire_many_owned(bytes).await.map_err(|_| closed())?,
        );
        shared.queue.send(queued.with_permits(permits)).map_err(|_| closed())?;
        Ok(EnqueueFuture(pending))
    }

    /// Waits until every buffered item is answered. Later sends wait until the flush is done.
    pub async fn flush(&self) -> Result<(), Error> {
        self.acquire_all().await.map(drop)
    }

    /// Flushes, and refuses all later sends, also those of clones.
    pub async fn close(&self) -> Result<(), Error> {
        let _permits = self.acquire_all().await?;
        self.0.items.close();
        self.0.bytes.close();
        Ok(())
    }

    /// Acquires the whole buffer: nothing is buffered or in flight then.
    async fn acquire_all(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        // At most u32::MAX / 16, so it fits.
        let items = u32::try_from(self.0.config.buffer_items).unwrap_or(u32::MAX);
        let mut all = std::pin::pin!(self.0.items.acquire_many(items));
        loop {
            self.0.flush.notify_one();
            tokio::select! {
                biased;
                all = &mut all => return all.map_err(|_| closed()),
                // A batch may have begun to linger after the last notification.
                () = tokio::time::sleep(self.0.config.linger.max(Duration::from_millis(1))) => {}
            }
        }
    }
}

/// The answer to one item of a [`Producer`].
#[derive(Debug)]
#[must_use = "only this reports that an item was not stored"]
pub struct EnqueueFuture(oneshot::Receiver<Result<EnqueuedItem, Error>>);

impl Future for EnqueueFuture {
    type Output = Result<EnqueuedItem, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(answer.unwrap_or_else(|_| {
            Err(Error::local(Code::Cancelled, "the producer's task ended before the item was answered")
                .or_done())
        }))
    }
}

fn closed() -> Error {
    Error::local(Code::FailedPrecondition, "the producer is closed")
}

#[cfg(test)]
mod tests;
