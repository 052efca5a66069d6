//! The engine's one task: the only writer of everything the node knows of its shards. It reads no database
//! and waits for nothing; it is told events and tells the shards' tasks what to commit.
//!
//! Exact priority order over a node's shards needs all their heads in one place; that is why one task owns
//! the ready indexes of all of them, and a shard's own task only its connections.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap},
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use forebay_types::{Monotonic, Namespace, Reason, Refusal, ShardId, Timestamp, TopicId, TopicName};
use rand::rngs::StdRng;
use rustc_hash::FxHashMap;
use tokio::sync::{mpsc::UnboundedSender, oneshot, watch};

use crate::{
    Settings,
    active_topics::{ActiveIndex, WaitingPage},
    breaker::{Breaker, Phase, SLOW},
    calls::Calls,
    dequeue::Poll,
    event::{Event, ShardEvent},
    form::{self, Context, Formed, InFlight},
    generations::longest_window,
    homes::Homes,
    io::{Line, Reads, Task},
    planted::{Bug, on},
    shard::Owned,
    time::NodeTime,
    turns::counts_until,
};

/// How long a shard whose head is unknown is waited for.
pub(crate) const HEAD_PATIENCE: Duration = Duration::from_millis(50);
/// A server whose clock is further off is reported.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);
/// Hints to clients when to try again.
pub(crate) const RETRY: Duration = Duration::from_millis(500);

/// A configured shard.
pub(crate) struct Shard {
    pub id: ShardId,
    /// Which server keeps it: the place of the first shard that is there.
    pub server: usize,
    /// It forms no batch before another shard's is back: its turn has not come.
    pub held: bool,
    pub life: u64,
    pub owned: Option<Box<Owned>>,
    /// What operators read while it is not owned.
    pub state: &'static str,
    pub breaker: Breaker,
    /// Whether its items took part in the merge when it was last looked after.
    pub was_merged: bool,
    pub last_error: String,
    /// The server's clock is far from node time; said in the log.
    pub clock_off: bool,
    pub tasks: UnboundedSender<Task>,
}

impl Shard {
    /// It may take new items.
    pub fn is_healthy(&self) -> bool {
        self.owned.as_ref().is_some_and(|owned| match self.breaker.phase() {
            Phase::Closed => true,
            // One batch probes; the rest goes elsewhere.
            Phase::HalfOpen => owned.in_flight.is_none() && owned.enqueues.items == 0,
            Phase::Open => false,
        })
    }

    /// Its ready items take part in the merge.
    pub fn is_merged(&self) -> bool {
        self.owned.is_some() && self.breaker.phase() != Phase::Open
    }

    /// Why it takes nothing for now.
    pub fn refusal(&self) -> Refusal {
        let id = self.id;
        let (reason, message) = if self.owned.is_none() && self.state == "waiting" {
            (Reason::NotOwner, format!("shard {id} is owned by another node"))
        } else {
            (Reason::ShardUnavailable, format!("shard {id} does not answer for now"))
        };
        Refusal::new(reason, message).retry_after(RETRY)
    }
}

/// A topic over all shards of the node.
#[derive(Default)]
pub(crate) struct NodeTopic {
    /// Where it has a row.
    pub parts: Vec<(usize, TopicId)>,
    /// Polls that wait for it. Their numbers grow, so the first is the one that came first.
    pub waiters: BTreeSet<u64>,
}

/// What is to be done at a time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A poll's wait is over, or the late rest of its answer is not waited for any more.
    Poll(u64),
    /// A page of active topics has waited long enough.
    Pages,
    /// A shard's head was waited for long enough.
    Topic(TopicName),
}

pub(crate) struct Core {
    pub settings: Settings,
    pub time: NodeTime,
    pub rng: StdRng,
    pub shards: Vec<Shard>,
    pub topics: HashMap<TopicName, NodeTopic>,
    /// How many topics a namespace has on this node.
    pub topics_of: HashMap<Namespace, usize>,
    pub polls: FxHashMap<u64, Poll>,
    pub calls: Calls,
    pub homes: Homes,
    pub active: HashMap<Namespace, ActiveIndex>,
    pub pages: Vec<WaitingPage>,
    pub timers: BinaryHeap<Reverse<(Monotonic, Timer)>>,
    /// Topics whose waiters may be served now.
    pub woken: BTreeSet<TopicName>,
    pub events: UnboundedSender<Event>,
    pub admitted: Arc<AtomicUsize>,
    /// The highest rank given out.
    pub rank: i64,
    /// The shard whose turn it is to form a batch.
    pub turn: usize,
    next_id: u64,
    pub stopping: Option<Vec<oneshot::Sender<()>>>,
    pub released: bool,
    pub ready: watch::Sender<bool>,
}

impl Core {
    pub fn new(
        settings: Settings,
        time: NodeTime,
        rng: StdRng,
        shards: Vec<(ShardId, usize, UnboundedSender<Task>)>,
        events: UnboundedSender<Event>,
        admitted: Arc<AtomicUsize>,
        ready: watch::Sender<bool>,
    ) -> Self {
        let at = time.monotonic();
        let homes = Homes::new(shards.iter().map(|(id, ..)| *id), longest_window(&settings), at);
        let shards = shards.into_iter().map(|(id, server, tasks)| Shard {
            id,
            server,
            held: false,
            life: 0,
            owned: None,
            state: "starting",
            breaker: Breaker::new(at),
            was_merged: true,
            last_error: String::new(),
            clock_off: false,
            tasks,
        });
        Self {
            settings,
            time,
            rng,
            shards: shards.collect(),
            topics: HashMap::new(),
            topics_of: HashMap::new(),
            polls: FxHashMap::default(),
            calls: Calls::default(),
            homes,
            active: HashMap::new(),
            pages: Vec::new(),
            timers: BinaryHeap::new(),
            woken: BTreeSet::new(),
            events,
            admitted,
            rank: i64::MIN,
            turn: 0,
            next_id: 0,
            stopping: None,
            released: false,
            ready,
        }
    }

    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub fn reads(&self, shard: usize) -> Option<Reads> {
        let Shard { life, owned, .. } = &self.shards[shard];
        let line = Line { shard, life: *life, events: self.events.clone() };
        owned.as_ref().map(|owned| Reads { reader: owned.reader.clone(), line })
    }

    pub fn place_of(&self, id: ShardId) -> Option<usize> {
        self.shards.iter().position(|shard| shard.id == id)
    }

    /// Takes note of one event.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Enqueue { call, bytes, reply } => self.enqueue(call, bytes, reply),
            Event::Dequeue { id, call, reply } => self.dequeue(id, call, reply),
            Event::PollGone(id) => self.poll_gone(id),
            Event::NotHanded(undo) => self.undo(undo),
            Event::Ack { acks, reply } => self.ack(acks, reply),
            Event::Nack { nacks, reply } => self.nack(nacks, reply),
            Event::Extend { extensions, reply } => self.extend_lease(extensions, reply),
            Event::ActiveTopics { call, reply } => self.active_topics(call, reply),
            Event::Status(reply) => {
                let _ = reply.send(self.status());
            }
            Event::Stop(reply) => self.stop(reply),
            Event::Shard { shard, life, what } => self.shard_event(shard, life, what),
        }
    }

    fn shard_event(&mut self, place: usize, life: u64, what: ShardEvent) {
        let at = self.time.monotonic();
        let shard = &self.shards[place];
        // It concerns a shard that was lost meanwhile.
        let late = life != shard.life || shard.owned.is_none();
        match what {
            ShardEvent::Waiting { state, why } => {
                let shard = &mut self.shards[place];
                (shard.life, shard.state, shard.last_error) = (life, state, why);
                self.tell_ready();
                return;
            }
            ShardEvent::Seen { lists } => {
                let now = self.time.now();
                self.homes.saw(place, &lists, now);
                return;
            }
            ShardEvent::Owned(taken) => return self.taken(place, life, *taken),
            ShardEvent::Released => {
                self.shards[place].state = "stopped";
                self.lose(place, false);
                return;
            }
            // Whoever asked still waits for an answer.
            ShardEvent::Fate { settle, .. } if late => {
                let refusal = self.shards[place].refusal();
                return self.settle_refused(&settle, refusal);
            }
            _ if late => return,
            _ => {}
        }
        let shard = &mut self.shards[place];
        let Some(owned) = &mut shard.owned else { return };
        match what {
            ShardEvent::Committed { last } => self.committed(place, last),
            ShardEvent::Poison { why, bad } => self.poisoned(place, &why, &bad),
            ShardEvent::DiskFull => self.disk_full(place),
            ShardEvent::Trouble(why) => {
                shard.last_error = why;
                shard.breaker.strike(at);
            }
            ShardEvent::Lost { sent } => self.lose(place, sent),
            ShardEvent::Renewed { began, clock } => {
                owned.trusted_until = owned.trusted_until.max(trusted_until(&self.settings, began));
                if let Some(clock) = clock {
                    self.time.vote(shard.server, clock);
                    let offset = self.time.offset(shard.server).unwrap_or(0);
                    let off = offset.unsigned_abs() > CLOCK_TOLERANCE.as_micros() as u64;
                    if off && !shard.clock_off {
                        tracing::warn!(
                            shard.id = shard.id.0,
                            offset_micros = offset,
                            "the server's clock is off"
                        );
                    }
                    shard.clock_off = off;
                }
            }
            ShardEvent::Ready { topic, read, rows } => {
                if let Err(error) = &rows {
                    shard.last_error = error.to_string();
                    shard.breaker.strike(at);
                }
                owned.held_reads.push((topic, read, rows.ok()));
                self.end_reads(place);
            }
            ShardEvent::Bodies { read, bodies } => self.bodies_came(place, read, bodies),
            ShardEvent::Scan { sweep, read, found } => {
                let failed = found.as_ref().err().map(ToString::to_string);
                owned.scanned(sweep, read, found.ok(), at);
                if let Some(error) = failed {
                    shard.last_error = error;
                    shard.breaker.strike(at);
                }
            }
            ShardEvent::Dedupe { read, hits } => self.looked_up(place, read, hits),
            ShardEvent::Fate { settle, fate } => self.fate_known(place, *settle, fate),
            ShardEvent::Generations { live } => {
                owned.generations.busy = false;
                match live {
                    Ok(live) => owned.generations.live = live,
                    Err(error) => {
                        owned.generations.not_before = at.plus(RETRY);
                        shard.last_error = error.to_string();
                    }
                }
                self.unblock(place);
            }
            ShardEvent::Waiting { .. }
            | ShardEvent::Seen { .. }
            | ShardEvent::Owned(_)
            | ShardEvent::Released => {}
        }
    }

    /// Does what has become possible or due: answers, reads, sweeps, batches.
    pub fn advance(&mut self) {
        let at = self.time.monotonic();
        self.expire_timers(at);
        for place in 0..self.shards.len() {
            self.tend(place, at);
            self.read_heads(place);
        }
        self.serve_woken();
        self.serve_pages();
        self.form_in_turn(at);
        self.finish_stop();
    }

    /// Looks after one shard: its breaker, sweeps, generations and memory.
    fn tend(&mut self, place: usize, at: Monotonic) {
        self.note_changes(place);
        let now = self.time.now();
        let budget = self.index_budget();
        let reads = self.reads(place);
        let read = self.next_id();
        let shard = &mut self.shards[place];
        let Some(owned) = &mut shard.owned else { return };
        if let Some(batch) = &mut owned.in_flight
            && !batch.slow
            && at.since(batch.sent_at) >= SLOW
        {
            batch.slow = true;
            shard.breaker.open(at);
        }
        shard.breaker.tick(at, owned.in_flight.is_none());
        // Its items are back, or left out: whoever waits and the order of active topics have to know.
        let merged = shard.breaker.phase() != Phase::Open;
        if std::mem::replace(&mut shard.was_merged, merged) != merged {
            let mut topics: Vec<TopicId> = owned.topics.keys().copied().collect();
            topics.sort_unstable();
            topics.into_iter().for_each(|topic| owned.note(topic));
        }
        owned.shed(budget);
        let now = owned.time.now(now, at);
        if let Some(reads) = reads {
            owned.sweep(&reads, read, now, at);
        }
        if let Some((create, drop)) = owned.wanted_generations(&self.settings, now, at) {
            let live = owned.generations.live.clone();
            let _ = shard.tasks.send(Task::Generations { life: shard.life, live, create, drop });
        }
    }

    /// Forms a shard's next batch and sends it off. Returns whether there is one.
    pub fn form(&mut self, place: usize, at: Monotonic) -> bool {
        let node_now = self.time.now();
        if self.shards[place].owned.as_ref().is_none_or(|owned| owned.in_flight.is_some()) {
            return false;
        }
        let waiters = self.waiters(place);
        let shard = &mut self.shards[place];
        let Some(owned) = &mut shard.owned else { return false };
        let topics_of = &self.topics_of;
        let mut context = Context {
            shard: shard.id,
            settings: &self.settings,
            now: owned.time.now(node_now, at),
            at,
            rng: &mut self.rng,
            topics_of: &|namespace| topics_of.get(namespace).copied().unwrap_or(0),
        };
        let outcome = form::form(owned, &mut context, waiters);
        if on(Bug::LeaseBeforeCommit)
            && let Some(flight) = &owned.in_flight
        {
            let leased: Vec<_> = (flight.formed.iter())
                .filter_map(|formed| match formed {
                    Formed::Leased { part, handed } => Some((part.clone(), handed.clone())),
                    _ => None,
                })
                .collect();
            for (part, handed) in leased {
                self.part_leased(place, part, handed);
            }
        }
        let shard = &mut self.shards[place];
        let Some(owned) = &mut shard.owned else { return false };
        let formed = outcome.batch.is_some();
        let sift = owned.in_flight.as_ref().is_some_and(InFlight::is_one_request);
        if let Some(batch) = outcome.batch {
            metrics::histogram!("forebay_batch_rows")
                .record(owned.in_flight.as_ref().map_or(0, |b| b.rows) as f64);
            let _ = shard.tasks.send(Task::Commit { life: shard.life, batch: Box::new(batch), sift });
        }
        for poll in outcome.met {
            self.met(poll);
        }
        for settle in outcome.misses {
            self.missed(place, settle);
        }
        formed
    }

    /// Takes what a shard's changes mean for the node: waiters to wake, the order of active topics.
    pub fn note_changes(&mut self, place: usize) {
        let Some(owned) = &mut self.shards[place].owned else { return };
        for id in owned.take_changed() {
            let Some(topic) = owned.topics.get(&id) else { continue };
            if let Some(active) = self.active.get_mut(&topic.name.namespace) {
                active.note(&topic.name.topic);
            }
            if self.topics.get(&topic.name).is_some_and(|topic| !topic.waiters.is_empty()) {
                self.woken.insert(topic.name.clone());
            }
        }
    }

    /// When [`Core::advance`] has something to do without an event.
    pub fn wake(&mut self) -> Option<Monotonic> {
        let at = self.time.monotonic();
        let now = self.time.now();
        let mut wake = self.timers.peek().map(|Reverse((at, _))| *at);
        let mut sooner = |time: Option<Monotonic>| wake = [wake, time].into_iter().flatten().min();
        for shard in &mut self.shards {
            let Some(owned) = &mut shard.owned else { continue };
            sooner(counts_until(owned, at));
            match &owned.in_flight {
                Some(batch) if !batch.slow => sooner(Some(batch.sent_at.plus(SLOW))),
                Some(_) => {}
                // What is due waits for its turn; that comes with an event, or when a batch counts no more.
                None if shard.held => sooner(shard.breaker.wake()),
                None => {
                    sooner(shard.breaker.wake());
                    let now = owned.time.now(now, at);
                    let after = |time: Timestamp| at.plus(time.since(now)).plus(Duration::from_micros(1));
                    sooner(owned.leases.next_deadline().map(|end| after(end).max(owned.lapse_after)));
                    let sweeping = owned.due.scan.is_some() || owned.expiry.scan.is_some();
                    for sweeper in [&owned.due, &owned.expiry] {
                        if !sweeping && sweeper.next < Timestamp::MAX {
                            sooner(Some(after(sweeper.next).max(sweeper.not_before)));
                        }
                    }
                    sooner(owned.idle.front().map(|(since, _)| since.plus(self.settings.idle_topic)));
                }
            }
            if !owned.generations.busy {
                let now = owned.time.now(now, at);
                let next = owned.next_generation_change(&self.settings);
                sooner(Some(at.plus(next.since(now)).max(owned.generations.not_before)));
            }
        }
        wake
    }

    fn expire_timers(&mut self, at: Monotonic) {
        while let Some(Reverse((time, _))) = self.timers.peek()
            && *time <= at
        {
            let Some(Reverse((_, timer))) = self.timers.pop() else { return };
            match timer {
                Timer::Poll(id) => self.poll_time(id),
                Timer::Pages => {}
                Timer::Topic(name) => {
                    self.woken.insert(name);
                }
            }
        }
    }
}

/// A claim that was renewed by a call that began at `began` holds until then, less a margin.
pub(crate) fn trusted_until(settings: &Settings, began: Monotonic) -> Monotonic {
    began.plus(settings.shard_lease - settings.shard_lease / 5)
}
