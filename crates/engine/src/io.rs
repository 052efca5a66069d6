//! The tasks that talk to a shard's store. They own the connections and nothing else: what they learn goes
//! to the engine's task as events.

use std::{sync::Arc, time::Duration};

use forebay_store::{
    Batch, Claim, CommitError, ErrorClass, Heartbeat, Observation, Outcome, Renewal, Shard, ShardConnections,
    StoreError, Sweep, Writer,
};
use forebay_types::{Clock, Incarnation, Key, Monotonic, Seq, ShardId, Timestamp, TopicId};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    Peers,
    event::{Event, ShardEvent, Taken},
    op::{KeyHash, Settle},
    planted::{Bug, on},
    sift,
};

/// After an owner has answered all the same, its shard is taken if nothing moved for so long.
const LAPSE_ANYWAY: Duration = Duration::from_secs(10);
/// How often a candidate looks at a shard.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait before the next try at a shard that failed.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// What the engine's task asks of a shard's task.
pub(crate) enum Task {
    /// `sift`: the batch must not be cut, so a row that can't be stored is to be found in it.
    Commit {
        life: u64,
        batch: Box<Batch>,
        sift: bool,
    },
    /// Make generations of the dedupe table, drop others.
    Generations {
        life: u64,
        live: Vec<u64>,
        create: Vec<u64>,
        drop: Vec<u64>,
    },
    Release,
}

/// Where events go: the engine's task, in the name of one shard.
#[derive(Clone)]
pub(crate) struct Line {
    pub shard: usize,
    pub life: u64,
    pub events: UnboundedSender<Event>,
}

impl Line {
    fn send(&self, what: ShardEvent) {
        // The engine's task is gone: nobody is interested any more.
        let _ = self.events.send(Event::Shard { shard: self.shard, life: self.life, what });
    }
}

/// All that a shard's task works with.
pub(crate) struct Keeper {
    pub id: ShardId,
    pub shard: Arc<dyn Shard>,
    pub address: String,
    pub peers: Arc<dyn Peers>,
    pub clock: Arc<dyn Clock>,
    pub shard_lease: Duration,
    pub rng: StdRng,
    pub line: Line,
}

/// Takes the shard over, serves it until it is lost, and begins again; until it is released.
pub(crate) async fn keep(mut keeper: Keeper, mut tasks: UnboundedReceiver<Task>) {
    loop {
        keeper.line.life += 1;
        let owned = tokio::select! {
            biased;
            owned = acquire(&mut keeper) => owned,
            () = released(&mut tasks) => {
                keeper.line.send(ShardEvent::Released);
                return;
            }
        };
        if serve(&mut keeper, owned, &mut tasks).await {
            keeper.line.send(ShardEvent::Released);
            return;
        }
    }
}

/// Waits until the shard is to be given up, or the engine is gone. Other tasks are of an earlier life.
async fn released(tasks: &mut UnboundedReceiver<Task>) {
    while let Some(task) = tasks.recv().await {
        if matches!(task, Task::Release) {
            return;
        }
    }
}

/// Takes the shard over once its owner, if it has one, has lapsed.
async fn acquire(keeper: &mut Keeper) -> ShardConnections {
    let mut pause = RETRY_MIN;
    let mut watch: Option<(Observation, Monotonic)> = None;
    let mut said = String::new();
    loop {
        match attempt(keeper, &mut watch).await {
            Ok(Some(owned)) => return owned,
            Ok(None) => {
                pause = RETRY_MIN;
                keeper.line.send(ShardEvent::Waiting {
                    state: "waiting",
                    why: "another node owns the shard".into(),
                });
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => {
                // The same again every second would only hide what else is said.
                if said != error.message {
                    tracing::warn!(shard.id = keeper.id.0, %error, "the shard can't be taken over");
                    said.clone_from(&error.message);
                }
                watch = None;
                keeper.line.send(ShardEvent::Waiting { state: "unreachable", why: error.to_string() });
                tokio::time::sleep(jitter(&mut keeper.rng, pause)).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
        }
    }
}

async fn attempt(
    keeper: &mut Keeper,
    watch: &mut Option<(Observation, Monotonic)>,
) -> Result<Option<ShardConnections>, StoreError> {
    let settings = keeper.shard.check().await?;
    let seen = keeper.shard.observe().await?;
    keeper.line.send(ShardEvent::Seen { lists: seen.topology_history.clone() });
    let now = keeper.clock.monotonic();
    let outage = match watch {
        Some((before, since)) if *before == seen => now.since(*since),
        _ => {
            *watch = Some((seen.clone(), now));
            Duration::ZERO
        }
    };
    if !lapsed(keeper, &seen, outage).await {
        return Ok(None);
    }
    let claim = Claim { incarnation: Incarnation(keeper.rng.random()), address: keeper.address.clone() };
    let began = keeper.clock.monotonic();
    let Some(owned) = keeper.shard.take_over(&claim, &seen).await? else {
        *watch = None;
        return Ok(None);
    };
    let image = owned.reader.load().await?;
    tracing::info!(shard.id = keeper.id.0, epoch = owned.fence.epoch, "shard taken over");
    let taken = Taken {
        fence: owned.fence,
        image,
        lists: seen.topology_history,
        reader: owned.reader.clone(),
        batch_bytes: settings.batch_bytes,
        began,
        outage,
    };
    keeper.line.send(ShardEvent::Owned(Box::new(taken)));
    Ok(Some(owned))
}

/// Whether the owner has given the shard up, or shown no sign of life for long enough.
async fn lapsed(keeper: &Keeper, seen: &Observation, still: Duration) -> bool {
    if seen.orphaned || seen.address.is_empty() {
        return true;
    }
    if still < keeper.shard_lease {
        return false;
    }
    // Whoever answers at our own address is ourselves: the owner was an earlier life of this node.
    let silent = seen.address == keeper.address || !keeper.peers.answers(&seen.address).await;
    silent || still >= LAPSE_ANYWAY
}

/// Serves a shard. Returns whether it was released (or the engine is gone), rather than lost.
async fn serve(keeper: &mut Keeper, owned: ShardConnections, tasks: &mut UnboundedReceiver<Task>) -> bool {
    let ShardConnections { mut writer, heartbeat, reader: _, .. } = owned;
    let (orders, inbox) = unbounded_channel();
    let (stopped, mut heart_lost) = tokio::sync::oneshot::channel();
    let beat = tokio::spawn(beat(
        heartbeat,
        keeper.line.clone(),
        keeper.clock.clone(),
        keeper.shard_lease / 4,
        inbox,
        stopped,
    ));
    let released = loop {
        let task = tokio::select! {
            biased;
            task = tasks.recv() => task,
            _ = &mut heart_lost => {
                keeper.line.send(ShardEvent::Lost { sent: false });
                break false;
            }
        };
        match task {
            // Meant for an earlier life, whose state the engine has dropped.
            Some(Task::Commit { life, .. } | Task::Generations { life, .. }) if life != keeper.line.life => {}
            Some(Task::Commit { batch, sift, .. }) => {
                match commit(keeper, writer.as_mut(), &batch, sift).await {
                    Verdict::Committed { last } => keeper.line.send(ShardEvent::Committed { last }),
                    Verdict::Poison { why, bad } => keeper.line.send(ShardEvent::Poison { why, bad }),
                    Verdict::DiskFull => keeper.line.send(ShardEvent::DiskFull),
                    Verdict::Foreign { sent } => {
                        keeper.line.send(ShardEvent::Lost { sent });
                        break false;
                    }
                }
            }
            Some(order @ Task::Generations { .. }) => {
                let _ = orders.send(order);
            }
            Some(Task::Release) => {
                if let Err(error) = writer.release().await {
                    tracing::warn!(shard.id = keeper.id.0, %error, "the shard was not given up; its lease will lapse");
                }
                break true;
            }
            None => break true,
        }
    };
    beat.abort();
    released
}

/// What became of a batch, for good.
enum Verdict {
    Committed { last: u64 },
    Poison { why: String, bad: Vec<Seq> },
    DiskFull,
    Foreign { sent: bool },
}

/// Commits a batch: replays it as often as it takes, and finds out what became of it where that is unknown.
/// This is the one place that retries. `uncut`: see [`Task::Commit`].
async fn commit(keeper: &mut Keeper, writer: &mut dyn Writer, batch: &Batch, uncut: bool) -> Verdict {
    let mut pause = RETRY_MIN;
    let mut sent = false;
    let mut gone_back = 0;
    loop {
        let error = match writer.commit(batch).await {
            Ok(()) => return Verdict::Committed { last: batch.number },
            Err(CommitError::RolledBack(error)) => match error.class {
                ErrorClass::Poison if uncut => match sift::sift(writer, batch).await {
                    Some(bad) => return Verdict::Poison { why: error.message, bad },
                    None => error.message,
                },
                ErrorClass::Poison => return Verdict::Poison { why: error.message, bad: Vec::new() },
                ErrorClass::DiskFull => return Verdict::DiskFull,
                ErrorClass::Replay => {
                    tracing::debug!(shard.id = keeper.id.0, batch = batch.number, %error, "batch replayed");
                    tokio::time::sleep(jitter(&mut keeper.rng, pause)).await;
                    pause = (pause * 2).min(RETRY_MAX);
                    continue;
                }
                ErrorClass::Schema | ErrorClass::Unavailable | ErrorClass::Disconnected => error.to_string(),
            },
            Err(CommitError::FenceMoved) => {
                gone_back += 1;
                CommitError::FenceMoved.to_string()
            }
            Err(CommitError::Unknown(_)) if on(Bug::UnknownAsCommitted) => {
                return Verdict::Committed { last: batch.number };
            }
            Err(CommitError::Unknown(error)) => {
                sent = true;
                error.to_string()
            }
        };
        tracing::warn!(shard.id = keeper.id.0, batch = batch.number, %error, "batch not committed at once");
        keeper.line.send(ShardEvent::Trouble(error));
        match resolve(keeper, writer, batch.number).await {
            Outcome::Committed => return confirm(keeper, writer, batch).await,
            Outcome::NotCommitted if gone_back > 1 => {
                // The fence is ours and behind us: the server has lost what it had committed. What is in memory is
                // worth nothing any more.
                tracing::error!(
                    shard.id = keeper.id.0,
                    batch = batch.number,
                    "the shard has lost committed batches"
                );
                return Verdict::Foreign { sent };
            }
            Outcome::NotCommitted => {
                // The old connection is dead and the fence says no: the COMMIT that was sent is undone.
                sent = false;
                tokio::time::sleep(jitter(&mut keeper.rng, pause)).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
            Outcome::Foreign => return Verdict::Foreign { sent },
        }
    }
}

/// Asks until the store knows what became of a batch.
async fn resolve(keeper: &mut Keeper, writer: &mut dyn Writer, number: u64) -> Outcome {
    let mut pause = RETRY_MIN;
    loop {
        match writer.resolve(number).await {
            Ok(outcome) => return outcome,
            Err(error) => {
                tracing::warn!(shard.id = keeper.id.0, batch = number, %error, "a batch's outcome is still unknown");
                keeper.line.send(ShardEvent::Trouble(error.to_string()));
                tokio::time::sleep(jitter(&mut keeper.rng, pause)).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
        }
    }
}

/// A row that a read-back saw may not be on disk yet: it is answered only after a further fenced write.
async fn confirm(keeper: &mut Keeper, writer: &mut dyn Writer, batch: &Batch) -> Verdict {
    let mut empty = Batch { number: batch.number + 1, marks: batch.marks, ..Batch::default() };
    let mut pause = RETRY_MIN;
    loop {
        match writer.commit(&empty).await {
            Ok(()) => return Verdict::Committed { last: empty.number },
            Err(error) => keeper.line.send(ShardEvent::Trouble(error.to_string())),
        }
        match resolve(keeper, writer, empty.number).await {
            // This one may not be on disk either: it takes another.
            Outcome::Committed => empty.number += 1,
            // A restart of the server may have undone the batch itself: ask again for the whole of it.
            Outcome::NotCommitted => match resolve(keeper, writer, empty.number - 1).await {
                Outcome::Committed => {}
                Outcome::NotCommitted if empty.number == batch.number + 1 => {
                    return Box::pin(commit(keeper, writer, batch, false)).await;
                }
                Outcome::NotCommitted => empty.number -= 1,
                Outcome::Foreign => return Verdict::Foreign { sent: true },
            },
            Outcome::Foreign => return Verdict::Foreign { sent: true },
        }
        tokio::time::sleep(jitter(&mut keeper.rng, pause)).await;
        pause = (pause * 2).min(RETRY_MAX);
    }
}

/// Renews the heartbeat, and makes and drops generations on the same connection.
async fn beat(
    mut heartbeat: Box<dyn Heartbeat>,
    line: Line,
    clock: Arc<dyn Clock>,
    every: Duration,
    mut orders: UnboundedReceiver<Task>,
    stopped: tokio::sync::oneshot::Sender<()>,
) {
    loop {
        let began = clock.monotonic();
        match heartbeat.renew().await {
            Ok(Renewal::Renewed { server_time }) => {
                line.send(ShardEvent::Renewed { began, clock: server_time });
            }
            Ok(Renewal::Lost) => {
                let _ = stopped.send(());
                return;
            }
            Err(error) => line.send(ShardEvent::Trouble(error.to_string())),
        }
        let next = tokio::time::sleep(every);
        tokio::pin!(next);
        loop {
            tokio::select! {
                biased;
                () = &mut next => break,
                order = orders.recv() => match order {
                    Some(Task::Generations { live, create, drop, .. }) => {
                        let live = generations(heartbeat.as_mut(), live, create, drop).await;
                        line.send(ShardEvent::Generations { live });
                    }
                    Some(_) => {}
                    None => return,
                },
            }
        }
    }
}

async fn generations(
    heartbeat: &mut dyn Heartbeat,
    mut live: Vec<u64>,
    create: Vec<u64>,
    drop: Vec<u64>,
) -> Result<Vec<u64>, StoreError> {
    for number in create {
        heartbeat.create_generation(number).await?;
        live.push(number);
    }
    for number in drop {
        heartbeat.drop_generation(number).await?;
        live.retain(|other| *other != number);
    }
    live.sort_unstable();
    Ok(live)
}

fn jitter(rng: &mut StdRng, pause: Duration) -> Duration {
    pause.mul_f64(rng.random_range(0.5..1.0))
}

/// A generator for a shard's task.
pub(crate) fn generator(seed: u64, shard: ShardId) -> StdRng {
    StdRng::seed_from_u64(seed ^ (u64::from(shard.0) << 32))
}

/// Reads of a shard, each a task of its own: a slow one holds up nobody.
#[derive(Clone)]
pub(crate) struct Reads {
    pub reader: Arc<dyn forebay_store::Reader>,
    pub line: Line,
}

impl Reads {
    pub fn ready(&self, topic: TopicId, read: u64, after: Key, limit: usize, bodies: bool) {
        let Self { reader, line } = self.clone();
        tokio::spawn(async move {
            let rows = reader.ready(topic, after, limit, bodies).await;
            line.send(ShardEvent::Ready { topic, read, rows });
        });
    }

    pub fn bodies(&self, read: u64, seqs: Vec<Seq>) {
        let Self { reader, line } = self.clone();
        tokio::spawn(async move {
            let bodies = reader.bodies(&seqs).await;
            line.send(ShardEvent::Bodies { read, bodies });
        });
    }

    pub fn scan(&self, sweep: Sweep, read: u64, from: Timestamp, to: Timestamp, limit: usize) {
        let Self { reader, line } = self.clone();
        tokio::spawn(async move {
            let found = async {
                let rows = reader.due(sweep, from, to, limit).await?;
                // What lies beyond is only asked for where nothing was found.
                let next = if rows.is_empty() { reader.next_due(sweep, to).await? } else { None };
                Ok((rows, next))
            };
            let found = found.await;
            line.send(ShardEvent::Scan { sweep, read, found });
        });
    }

    pub fn dedupe(&self, read: u64, generations: Vec<u64>, hashes: Vec<KeyHash>) {
        let Self { reader, line } = self.clone();
        tokio::spawn(async move {
            let hits = reader.dedupe(&generations, &hashes).await;
            line.send(ShardEvent::Dedupe { read, hits });
        });
    }

    pub fn fate(&self, settle: Box<Settle>) {
        let Self { reader, line } = self.clone();
        tokio::spawn(async move {
            let fate = reader.locate(settle.receipt.item.seq).await;
            line.send(ShardEvent::Fate { settle, fate });
        });
    }
}
