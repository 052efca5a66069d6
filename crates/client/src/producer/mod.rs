//! A producer that gathers what waits into batches.

mod gather;
mod run;

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tonic::Code;

use crate::{Client, Enqueued, Error, NewItem};
use gather::Waiting;

/// How a producer gathers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerConfig {
    /// Items that may wait or be under way; [`Producer::send`] waits for room beyond it.
    pub buffer_items: usize,
    /// The same in bytes.
    pub buffer_bytes: usize,
    /// Calls that may be under way at a time. With 1 the items of one producer are stored in the order of
    /// its sends; with more, in about that order.
    pub calls: usize,
    /// Items of one call; at most 1,000.
    pub batch_items: usize,
    /// Bytes of one call; at most 4 MiB.
    pub batch_bytes: usize,
    /// How long to wait for company before a call that is not full. Zero: not at all; while calls are under
    /// way the next ones fill by themselves.
    pub linger: Duration,
}

impl Default for ProducerConfig {
    fn default() -> Self {
        Self {
            buffer_items: 10_000,
            buffer_bytes: 32 << 20,
            calls: 4,
            batch_items: 1_000,
            batch_bytes: (4 << 20) - (64 << 10),
            linger: Duration::ZERO,
        }
    }
}

/// Sends items in batches. Cheap to clone; the clones share one buffer. When the last one goes, what is in
/// the buffer is still sent, as long as the runtime lives; [`Producer::close`] waits for it.
#[derive(Debug, Clone)]
pub struct Producer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: mpsc::UnboundedSender<Waiting>,
    items: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    hurry: Arc<Notify>,
    config: ProducerConfig,
}

impl Producer {
    /// Starts a producer; must be called inside a Tokio runtime.
    pub fn start(client: Client, config: ProducerConfig) -> Self {
        const MOST: usize = u32::MAX as usize >> 4;
        let config = ProducerConfig {
            buffer_items: config.buffer_items.clamp(1, MOST),
            buffer_bytes: config.buffer_bytes.clamp(1, MOST),
            calls: config.calls.clamp(1, 1_000),
            batch_items: config.batch_items.clamp(1, 1_000),
            batch_bytes: config.batch_bytes.clamp(1, 4 << 20),
            linger: config.linger,
        };
        let (queue, waiting) = mpsc::unbounded_channel();
        let hurry = Arc::new(Notify::new());
        tokio::spawn(run::run(client, config, waiting, hurry.clone()));
        Self(Arc::new(Shared {
            queue,
            items: Arc::new(Semaphore::new(config.buffer_items)),
            bytes: Arc::new(Semaphore::new(config.buffer_bytes)),
            hurry,
            config,
        }))
    }

    /// Takes an item in, once there is room for it. The answer comes through what is returned, which need not
    /// be awaited: dropping it does not take the item back.
    pub async fn send(&self, item: NewItem) -> Result<Pending, Error> {
        let (waiting, pending) = Waiting::new(item);
        let shared = &*self.0;
        let bytes = u32::try_from(waiting.bytes.min(shared.config.buffer_bytes)).unwrap_or(u32::MAX);
        let room = (
            shared.items.clone().acquire_owned().await.map_err(|_| closed())?,
            shared.bytes.clone().acquire_many_owned(bytes).await.map_err(|_| closed())?,
        );
        shared.queue.send(waiting.with_room(room)).map_err(|_| closed())?;
        Ok(Pending(pending))
    }

    /// Waits until everything that was sent before has its answer. Sends made meanwhile wait for it.
    pub async fn flush(&self) -> Result<(), Error> {
        self.all().await.map(drop)
    }

    /// The same, and takes nothing in any more, through no clone.
    pub async fn close(&self) -> Result<(), Error> {
        let _all = self.all().await?;
        self.0.items.close();
        self.0.bytes.close();
        Ok(())
    }

    /// All of the buffer: nothing waits and nothing is under way.
    async fn all(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        // At most u32::MAX / 16, so it fits.
        let items = u32::try_from(self.0.config.buffer_items).unwrap_or(u32::MAX);
        let mut all = std::pin::pin!(self.0.items.acquire_many(items));
        loop {
            self.0.hurry.notify_one();
            tokio::select! {
                biased;
                all = &mut all => return all.map_err(|_| closed()),
                // A batch that began to linger after the last word is told again.
                () = tokio::time::sleep(self.0.config.linger.max(Duration::from_millis(1))) => {}
            }
        }
    }
}

/// The answer to one item of a [`Producer`].
#[derive(Debug)]
#[must_use = "an item that was not stored says so only here"]
pub struct Pending(oneshot::Receiver<Result<Enqueued, Error>>);

impl Future for Pending {
    type Output = Result<Enqueued, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(answer.unwrap_or_else(|_| {
            Err(Error::local(Code::Cancelled, "the producer ended before the item had its answer").or_done())
        }))
    }
}

fn closed() -> Error {
    Error::local(Code::FailedPrecondition, "the producer is closed")
}

#[cfg(test)]
mod tests;
