//! The handle by which callers reach the engine, and the loop that runs it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use forebay_store::Shard;
use forebay_types::{Clock, Reason, Receipt, Refusal, ShardId};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot, watch,
};

use crate::{
    ActiveTopics, ActiveTopicsCall, Delivered, DequeueCall, EnqueueCall, Enqueued, ExtendOf, Extended,
    NackOf, Peers, Settings, Settled, Status,
    core::{Core, RETRY},
    enqueue::draining,
    event::{Event, Reply},
    io::{self, Keeper, Line},
    time::NodeTime,
};

/// Events taken in before the engine acts on them: what came together is committed together.
const EVENTS: usize = 1_024;

/// Of each shard the place of the first one that the same server keeps.
fn servers_of(shards: &[(ShardId, Arc<dyn Shard>)]) -> Vec<usize> {
    let names: Vec<String> = shards.iter().map(|(_, shard)| shard.server()).collect();
    let first = |name| names.iter().position(|other| other == name).unwrap_or_default();
    names.iter().map(first).collect()
}

/// A running engine. Cheap to clone; every clone reaches the same one.
#[derive(Clone)]
pub struct Engine {
    events: UnboundedSender<Event>,
    admitted: Arc<AtomicUsize>,
    admit_bytes: usize,
    polls: Arc<AtomicU64>,
    ready: watch::Receiver<bool>,
}

impl Engine {
    /// Starts the engine over these shards, on the current runtime; it takes them over in the background.
    /// `address` is where this process answers, `host:port`; `seed` makes everything random about it.
    pub fn start(
        settings: Settings,
        address: String,
        shards: Vec<(ShardId, Arc<dyn Shard>)>,
        clock: Arc<dyn Clock>,
        peers: Arc<dyn Peers>,
        seed: u64,
    ) -> Self {
        let (events, inbox) = unbounded_channel();
        let (ready_told, ready) = watch::channel(false);
        let admitted = Arc::new(AtomicUsize::new(0));
        let mut rng = StdRng::seed_from_u64(seed);
        let mut lines = Vec::with_capacity(shards.len());
        let servers = servers_of(&shards);
        for ((place, (id, shard)), server) in shards.into_iter().enumerate().zip(servers) {
            let (tasks, orders) = unbounded_channel();
            let keeper = Keeper {
                id,
                shard,
                address: address.clone(),
                peers: peers.clone(),
                clock: clock.clone(),
                shard_lease: settings.shard_lease,
                rng: io::generator(rng.random(), id),
                line: Line { shard: place, life: 0, events: events.clone() },
            };
            tokio::spawn(io::keep(keeper, orders));
            lines.push((id, server, tasks));
        }
        let admit_bytes = settings.admit_bytes;
        let time = NodeTime::new(clock);
        let core = Core::new(settings, time, rng, lines, events.clone(), admitted.clone(), ready_told);
        tokio::spawn(run(core, inbox));
        Self { events, admitted, admit_bytes, polls: Arc::new(AtomicU64::new(0)), ready }
    }

    /// Stores items. The outer error refuses the whole call: nothing of it happened.
    pub async fn enqueue(&self, call: EnqueueCall) -> Result<Vec<Result<Enqueued, Refusal>>, Refusal> {
        if call.items.is_empty() {
            return Ok(Vec::new());
        }
        // The budget is taken before anything is buffered.
        let bytes: usize = call.items.iter().map(|item| item.body.bytes() + 256).sum();
        let before = self.admitted.fetch_add(bytes, Ordering::Relaxed);
        if before > 0 && before + bytes > self.admit_bytes {
            self.admitted.fetch_sub(bytes, Ordering::Relaxed);
            let message = "more waits to be stored than the node takes on";
            return Err(Refusal::new(Reason::Overloaded, message).retry_after(RETRY));
        }
        self.ask(|reply| Event::Enqueue { call, bytes, reply }).await
    }

    /// Leases items, waiting for them if asked to. What was leased for a caller that goes away is released.
    pub async fn dequeue(&self, call: DequeueCall) -> Result<Vec<Delivered>, Refusal> {
        let id = self.polls.fetch_add(1, Ordering::Relaxed);
        let mut gone = Gone { id, events: &self.events, armed: true };
        let answer = self.ask(|reply| Event::Dequeue { id, call, reply }).await;
        gone.armed = false;
        Ok(answer?.take())
    }

    /// Ends deliveries.
    pub async fn ack(&self, acks: Vec<Receipt>) -> Result<Vec<Settled>, Refusal> {
        self.ask(|reply| Event::Ack { acks, reply }).await
    }

    /// Gives items back.
    pub async fn nack(&self, nacks: Vec<NackOf>) -> Result<Vec<Settled>, Refusal> {
        self.ask(|reply| Event::Nack { nacks, reply }).await
    }

    /// Moves the ends of leases.
    pub async fn extend_lease(&self, extensions: Vec<ExtendOf>) -> Result<Vec<Extended>, Refusal> {
        self.ask(|reply| Event::Extend { extensions, reply }).await
    }

    /// Lists topics that have something to deliver.
    pub async fn active_topics(&self, call: ActiveTopicsCall) -> Result<ActiveTopics, Refusal> {
        self.ask(|reply| Event::ActiveTopics { call, reply }).await
    }

    /// What operators see. `None` once the engine has stopped.
    pub async fn status(&self) -> Option<Status> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Event::Status(reply)).ok()?;
        answer.await.ok()
    }

    /// Waits until every shard that can be reached is owned, and at least one is. Never returns if the engine
    /// stops before that.
    pub async fn ready(&self) {
        let mut ready = self.ready.clone();
        if ready.wait_for(|ready| *ready).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether [`Engine::ready`] would return at once.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Takes no more work, answers long polls empty, commits what was accepted, answers it, gives the shards
    /// up, and stops. Returns when that is done.
    pub async fn stop(&self) {
        let (reply, done) = oneshot::channel();
        if self.events.send(Event::Stop(reply)).is_ok() {
            let _ = done.await;
        }
    }

    async fn ask<T>(&self, event: impl FnOnce(Reply<T>) -> Event) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        if self.events.send(event(reply)).is_err() {
            return Err(draining());
        }
        // The engine ended with the call in hand: nobody knows how far it got.
        answer.await.unwrap_or_else(|_| {
            Err(Refusal::new(Reason::OutcomeUnknown, "the node stopped before it could answer")
                .retry_after(RETRY))
        })
    }
}

/// Tells the engine when the caller of a dequeue goes away.
struct Gone<'a> {
    id: u64,
    events: &'a UnboundedSender<Event>,
    armed: bool,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        if self.armed {
            let _ = self.events.send(Event::PollGone(self.id));
        }
    }
}

/// The engine's loop: take in what came, act, sleep until something comes or is due.
async fn run(mut core: Core, mut inbox: UnboundedReceiver<Event>) {
    let mut events = Vec::with_capacity(EVENTS);
    loop {
        let wake = core.wake();
        let pause = wake.map_or(Duration::from_secs(3_600), |wake| wake.since(core.time.monotonic()));
        if pause.is_zero() {
            while events.len() < EVENTS
                && let Ok(event) = inbox.try_recv()
            {
                events.push(event);
            }
        } else {
            tokio::select! {
                biased;
                count = inbox.recv_many(&mut events, EVENTS) => if count == 0 { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
        for event in events.drain(..) {
            core.handle(event);
        }
        core.advance();
        if core.has_stopped() {
            // Calls that came too late hear that the node stops: nothing of them happened.
            inbox.close();
            while let Ok(event) = inbox.try_recv() {
                core.handle(event);
            }
            return;
        }
        // Whoever was answered gets its turn before the next batch is formed.
        tokio::task::yield_now().await;
    }
}
