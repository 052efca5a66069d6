//! Producers and consumers.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use forebay_client::{Client, DequeueCall, Error, NewItem, ReceivedItem};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    ledger::Ledger,
    nodes::Nodes,
    report::{Latency, LoadMeasurements},
};
use crate::failure::Failure;

/// Items that wait to be taken: more would only measure how they wait.
const BACKLOG_MAX: usize = 20_000;
/// How long a dequeue waits for items.
const POLL_WAIT: Duration = Duration::from_millis(200);
/// How long it may take until the last item is done. Longer than a lease, so that what was lost with an
/// answer comes again.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// A call that takes longer goes on beside the next one.
const SLOW_CALL: Duration = Duration::from_millis(500);
/// Calls of one producer, and acks of one consumer, that may be under way then.
const UNDER_WAY_MAX: usize = 16;
/// The lease of each delivery.
const LEASE: Duration = Duration::from_secs(10);

/// State that producers and consumers share.
pub struct Load {
    /// The topic.
    topic: String,
    /// Bytes of a payload.
    size: usize,
    /// Items of a call.
    batch: u32,
    /// When it began.
    begun: Instant,
    /// Permits of items that may still be stored.
    backlog: Semaphore,
    /// Consumers end.
    done: AtomicBool,
    /// Events so far.
    seen: Mutex<LoadEvents>,
}

/// Events of a load.
#[derive(Default)]
struct LoadEvents {
    /// Fate of each item.
    ledger: Ledger,
    /// How long calls took that enqueue, in microseconds.
    enqueue: Vec<u32>,
    /// How long it took from the beginning of an enqueue to the delivery, in microseconds.
    end_to_end: Vec<u32>,
    /// When the last item was done.
    last: Option<Instant>,
    /// Calls and members of calls that failed.
    errors: u64,
    /// The first of these errors.
    error: Option<Error>,
}

impl Load {
    /// Nothing has happened yet.
    pub fn new(topic: String, size: usize, batch: u32) -> Self {
        Self {
            topic,
            size,
            batch,
            begun: Instant::now(),
            backlog: Semaphore::new(BACKLOG_MAX),
            done: AtomicBool::new(false),
            seen: Mutex::default(),
        }
    }

    /// Stores items for so long, and takes them until all are done. An interrupt ends the storing. A node
    /// that joins meanwhile is asked for items, too.
    pub async fn run(
        self: &Arc<Self>,
        mut nodes: Nodes<'_>,
        producers: u32,
        consumers: u32,
        duration: Duration,
    ) -> Result<LoadMeasurements, Failure> {
        let mut taking = JoinSet::new();
        let mut take = |client| {
            let load = self.clone();
            taking.spawn(async move { load.consume(client).await });
        };
        nodes.clients(consumers as usize)?.into_iter().for_each(&mut take);
        let mut work = pin!(self.store_and_wait(nodes.all(), producers, duration));
        loop {
            tokio::select! {
                () = &mut work => break,
                joined = nodes.next() => take(joined?),
            }
        }
        self.done.store(true, Relaxed);
        while taking.join_next().await.is_some() {}
        self.measured()
    }

    /// Stores items for so long, and waits until all are done.
    async fn store_and_wait(self: &Arc<Self>, producer: Client, producers: u32, duration: Duration) {
        let end = Instant::now() + duration;
        let mut storing = JoinSet::new();
        for _ in 0..producers {
            let (load, client) = (self.clone(), producer.clone());
            storing.spawn(async move { load.produce(client, end).await });
        }
        tokio::select! {
            () = async { while storing.join_next().await.is_some() {} } => {}
            _ = tokio::signal::ctrl_c() => storing.shutdown().await,
        }
        let drained = Instant::now() + DRAIN_TIMEOUT;
        while self.seen().ledger.left() > 0 && Instant::now() < drained {
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn produce(self: Arc<Self>, client: Client, end: Instant) {
        let mut calls = JoinSet::new();
        while Instant::now() < end {
            let Ok(Ok(permits)) = timeout_at(end, self.backlog.acquire_many(self.batch)).await else {
                break;
            };
            // They come back with the acks.
            permits.forget();
            let (load, client) = (self.clone(), client.clone());
            calls.spawn(async move { load.enqueue(&client).await });
            go_on(&mut calls).await;
        }
        calls.join_all().await;
    }

    /// Stores the items of one call.
    async fn enqueue(&self, client: &Client) {
        let numbers = self.seen().ledger.reserve(self.batch as usize);
        let sent = Instant::now();
        let items = numbers.clone().map(|number| NewItem::new(&*self.topic, self.payload(number, sent)));
        let answer = client.enqueue(items.collect::<Vec<_>>()).await;
        let took = micros(sent.elapsed());
        let mut seen = self.seen();
        match answer {
            Ok(results) => {
                seen.enqueue.push(took);
                for (number, result) in numbers.zip(results) {
                    match result {
                        Ok(_) => seen.ledger.stored(number),
                        Err(error) => self.not_stored(&mut seen, 1, error),
                    }
                }
            }
            Err(error) => self.not_stored(&mut seen, self.batch as usize, error),
        }
    }

    fn not_stored(&self, seen: &mut LoadEvents, items: usize, error: Error) {
        self.backlog.add_permits(items);
        seen.failed(error);
    }

    async fn consume(self: Arc<Self>, client: Client) {
        let mut acks = JoinSet::new();
        while !self.done.load(Relaxed) {
            let called = Instant::now();
            let call = DequeueCall::topic(&*self.topic, self.batch).wait(POLL_WAIT).lease(LEASE);
            match client.dequeue(call).await {
                Ok(items) if items.is_empty() => {}
                Ok(items) => {
                    let (load, client) = (self.clone(), client.clone());
                    acks.spawn(async move { load.take(&client, items, called).await });
                    go_on(&mut acks).await;
                }
                Err(error) => {
                    self.seen().failed(error);
                    sleep(POLL_WAIT).await;
                }
            }
        }
        acks.join_all().await;
    }

    /// Acks items.
    async fn take(&self, client: &Client, items: Vec<ReceivedItem>, called: Instant) {
        let now = micros(self.begun.elapsed());
        let numbers: Vec<usize> = {
            let mut seen = self.seen();
            let number = |item: &ReceivedItem| {
                let (number, sent) = read(&item.payload)?;
                seen.ledger.delivered(number, called);
                seen.end_to_end.push(now.saturating_sub(sent));
                Some(number)
            };
            // One of another form is nobody's: it counts as number that was never given.
            items.iter().map(number).map(|number| number.unwrap_or(usize::MAX)).collect()
        };
        match client.ack(items.into_iter().map(|item| item.receipt).collect::<Vec<_>>()).await {
            Ok(results) => {
                let mut seen = self.seen();
                for (number, result) in numbers.into_iter().zip(results) {
                    match result {
                        Ok(()) => self.backlog.add_permits(usize::from(seen.ledger.acked(number))),
                        Err(error) => seen.failed(error),
                    }
                }
                seen.last = Some(Instant::now());
            }
            Err(error) => self.seen().failed(error),
        }
    }

    /// The number, the time since the beginning, and filling.
    fn payload(&self, number: usize, sent: Instant) -> Bytes {
        let mut payload = Vec::with_capacity(self.size);
        payload.extend((number as u64).to_be_bytes());
        payload.extend(micros(sent - self.begun).to_be_bytes());
        payload.resize(self.size.max(payload.len()), b'.');
        payload.into()
    }

    fn measured(&self) -> Result<LoadMeasurements, Failure> {
        let mut seen = self.seen();
        let LoadEvents { ledger, error, errors, last, .. } = &mut *seen;
        if ledger.stored == 0 {
            return Err(error
                .take()
                .map_or_else(|| Failure::new("interrupted; nothing was stored"), Into::into));
        }
        let span = last.map_or(Duration::ZERO, |last| last - self.begun);
        Ok(LoadMeasurements {
            topic: self.topic.clone(),
            stored: ledger.stored,
            acked: ledger.acked,
            lost: ledger.left(),
            redelivered: ledger.redelivered,
            after_ack: ledger.after_ack,
            errors: *errors,
            error: error.as_ref().map(ToString::to_string),
            span,
            enqueue: Latency::of(std::mem::take(&mut seen.enqueue)),
            end_to_end: Latency::of(std::mem::take(&mut seen.end_to_end)),
        })
    }

    fn seen(&self) -> MutexGuard<'_, LoadEvents> {
        // A panic while the lock is held leaves counts that are of use.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a call has ended. One that takes long, because a shard does not answer, does not hold up the
/// next ones, unless there are many.
async fn go_on(calls: &mut JoinSet<()>) {
    while calls.try_join_next().is_some() {}
    if calls.len() < UNDER_WAY_MAX {
        // The call goes on beside the next ones.
        let _ = timeout(SLOW_CALL, calls.join_next()).await;
    } else {
        calls.join_next().await;
    }
}

impl LoadEvents {
    fn failed(&mut self, error: Error) {
        self.errors += 1;
        self.error.get_or_insert(error);
    }
}

/// The number and the time in a payload.
fn read(payload: &[u8]) -> Option<(usize, u32)> {
    let number = u64::from_be_bytes(payload.get(..8)?.try_into().ok()?);
    let sent = u32::from_be_bytes(payload.get(8..12)?.try_into().ok()?);
    Some((usize::try_from(number).ok()?, sent))
}

/// Up to an hour and more.
fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}
