//! The database of one fake shard: its rows, connections and faults, and a log of its batches.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_store::{Batch, ErrorClass, ReadyRow, StoreError, TopicRow};
use forebay_types::{ClusterId, Incarnation, ShardId, Timestamp, TopicId};

use super::{
    change::{Change, Violation},
    coverage::StoreCoverage,
    dice::Dice,
    faults::Faults,
    journal::{Journal, Moment},
    owners::{AttemptRecord, ReleaseRecord, TakeOverRecord},
    process::Process,
    store_bug::StoreBug,
    tables::Tables,
};

/// An item whose payload begins with these bytes cannot be stored.
pub const POISON: &[u8] = b"\xffPOISON";

/// The most bytes that a batch may carry, unless the run says otherwise.
const BATCH_BYTES: usize = 4 << 20;

/// A committed batch, for the checks after a run.
#[derive(Debug, Clone)]
pub struct CommitRecord {
    /// When the engine asked for it.
    pub asked: Moment,
    /// When it took effect.
    pub done: Moment,
    /// Which process asked.
    pub process: usize,
    /// The epoch of the owner that wrote it.
    pub epoch: u64,
    /// The owner that wrote it.
    pub incarnation: Incarnation,
    /// The fence's epoch when the batch took effect.
    pub fence_epoch: u64,
    /// The owner that the fence named at that time.
    pub fence_incarnation: Incarnation,
    /// The batch's number.
    pub number: u64,
    /// The shard's time, as the batch recorded it.
    pub time: Timestamp,
    /// Topics that it created.
    pub topics: Vec<TopicRow>,
    /// An operation released leases in it.
    pub resets: bool,
    /// Its changes, in order.
    pub changes: Vec<Change>,
}

/// A batch whose COMMIT hangs.
#[derive(Debug)]
pub(super) struct HangingCommit {
    /// The connection that sent it.
    pub connection: u64,
    /// The batch.
    pub batch: Batch,
    /// When the engine asked for it.
    pub asked: Moment,
    /// The process that sent it.
    pub author: Author,
}

/// State on disk while later commits are not there.
#[derive(Debug)]
pub(super) struct OnDisk {
    /// The rows.
    pub tables: Tables,
    /// How many batches.
    pub batches: usize,
}

/// The owner that writes a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Author {
    /// Its process.
    pub process: usize,
    /// Its epoch.
    pub epoch: u64,
    /// Its random name.
    pub incarnation: Incarnation,
}

/// Everything about one fake shard. It outlives the engines that use it.
#[derive(Debug)]
pub struct State {
    /// Its number.
    pub id: ShardId,
    /// The server that it reports. By default it has one of its own.
    pub server: String,
    /// The committed rows.
    pub tables: Tables,
    /// How it behaves now.
    pub faults: Faults,
    /// Its planted bug, to test the checker.
    pub bug: Option<StoreBug>,
    /// How far the server's clock is from the true time, in microseconds.
    pub clock_offset: i64,
    /// The most bytes of new items that a batch may carry.
    pub batch_bytes: usize,
    /// Settings of the server that may lose a commit.
    pub not_durable: Vec<String>,
    /// No generation of dedupe keys is dropped before its youngest key is as old. Zero: not checked.
    pub dedupe_window: Duration,
    /// Every committed batch.
    pub log: Vec<CommitRecord>,
    /// Every take-over.
    pub owners: Vec<TakeOverRecord>,
    /// Every release.
    pub releases: Vec<ReleaseRecord>,
    /// Take-overs that were tried, in order.
    pub tried: Vec<AttemptRecord>,
    /// The processes that do not reach it.
    pub refuses: BTreeSet<usize>,
    /// Acts of an engine that it never may do.
    pub violations: Vec<Violation>,
    /// Which situations it met.
    pub coverage: StoreCoverage,
    /// Batches that were to be committed, successful or not.
    pub commits: u64,
    /// Operations beside commits: reads, renewals and others.
    pub operations: u64,
    /// Its randomness.
    pub(super) dice: Dice,
    /// The rows of each topic at the last read, for [`StoreBug::ReadShowsThePast`].
    pub(super) past: BTreeMap<TopicId, Vec<ReadyRow>>,
    /// Its cluster; `None` before the first migration.
    pub cluster: Option<ClusterId>,
    /// The newest schema version that a program must know to use it. This program knows 1.
    pub oldest_program: u32,
    /// A catalog is stored there instead.
    pub is_catalog: bool,
    /// The COMMIT that hangs, if one does.
    pub(super) hanging: Option<HangingCommit>,
    /// State that a restart of the server brings back: some commits are not on disk yet.
    pub(super) on_disk: Option<OnDisk>,
    /// Rows of the last batch that had one that cannot be stored, and who wrote it.
    pub(super) unsplit: Option<(Author, u64)>,
    /// The connection whose batch is in flight.
    pub(super) in_flight: Option<u64>,
    /// The number of the last connection.
    next_connection: u64,
    /// The open connections.
    live: BTreeSet<u64>,
}

/// A handle on a fake shard's database. Clones reach the same one.
#[derive(Debug, Clone)]
pub struct Db {
    /// Which shard it is.
    pub id: ShardId,
    /// Records every event.
    pub journal: Arc<Journal>,
    /// The database itself.
    state: Arc<Mutex<State>>,
}

impl Db {
    /// An empty database without a schema, healthy and without delay.
    pub fn new(id: ShardId, journal: Arc<Journal>, dice: Dice) -> Self {
        let state = State {
            id,
            server: format!("memory-{id}"),
            tables: Tables::new(),
            faults: Faults::instant(),
            bug: None,
            clock_offset: 0,
            batch_bytes: BATCH_BYTES,
            not_durable: Vec::new(),
            dedupe_window: Duration::ZERO,
            log: Vec::new(),
            owners: Vec::new(),
            releases: Vec::new(),
            tried: Vec::new(),
            refuses: BTreeSet::new(),
            violations: Vec::new(),
            coverage: StoreCoverage::default(),
            commits: 0,
            operations: 0,
            dice,
            past: BTreeMap::new(),
            cluster: None,
            oldest_program: 1,
            is_catalog: false,
            hanging: None,
            on_disk: None,
            unsplit: None,
            in_flight: None,
            next_connection: 1,
            live: BTreeSet::new(),
        };
        Self { id, journal, state: Arc::new(Mutex::new(state)) }
    }

    /// Locks the database. The guard must not be held over an await.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server's clock.
    pub fn server_clock(&self) -> Timestamp {
        let offset = self.lock().clock_offset;
        Timestamp::from_micros(self.journal.now().as_micros() + offset)
    }

    /// Waits for the duration of an operation, then until the process can reach the shard.
    pub(super) async fn pass(&self, process: &Process, span: Duration) {
        if !span.is_zero() {
            tokio::time::sleep(span).await;
        }
        process.gate().await;
    }

    /// Takes the time that an answer is on its way.
    pub(super) async fn answer(&self, process: &Process) {
        let span = {
            let state = &mut *self.lock();
            state.dice.millis(state.faults.reply_ms)
        };
        self.pass(process, span).await;
    }

    /// Takes the time of an operation other than a commit, and fails by chance.
    pub(super) async fn operate(
        &self,
        process: &Process,
        name: &str,
        fails: impl Fn(&Faults) -> u32,
    ) -> Result<(), StoreError> {
        let (span, failed) = {
            let state = &mut *self.lock();
            state.operations += 1;
            let span = state.faults.pause(&mut state.dice, state.faults.read_ms);
            let refused = state.refuses.contains(&process.number);
            (span, state.faults.down || refused || state.dice.chance(fails(&state.faults)))
        };
        let dropped = process.watch(|| self.lock().coverage.dropped_operations += 1);
        self.pass(process, span).await;
        dropped.over();
        if failed {
            self.note(process, format_args!("{name} failed"));
            return Err(StoreError::new(ErrorClass::Disconnected, format!("{name}: connection lost")));
        }
        Ok(())
    }

    /// Records an event.
    pub(super) fn note(&self, process: &Process, what: fmt::Arguments<'_>) -> Moment {
        self.journal.note(format_args!("shard {} process {}: {what}", self.id, process.number))
    }
}

impl State {
    /// Whether a batch is on its way.
    pub fn is_committing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Opens a connection.
    pub(super) fn connect(&mut self) -> u64 {
        self.next_connection += 1;
        self.live.insert(self.next_connection);
        self.next_connection
    }

    /// Whether a connection is open.
    pub(super) fn lives(&self, connection: u64) -> bool {
        self.live.contains(&connection)
    }

    /// The server restarted: every connection is gone.
    pub(super) fn disconnect_all(&mut self) {
        self.live.clear();
        self.hanging = None;
    }

    /// Closes a connection from the client's side. A COMMIT that hangs on it keeps hanging.
    pub(super) fn disconnect(&mut self, connection: u64) {
        self.live.remove(&connection);
    }

    /// Kills a connection. A COMMIT that hangs on it is decided now, by chance.
    pub(super) fn kill(&mut self, journal: &Journal, connection: u64) {
        self.live.remove(&connection);
        if self.hanging.as_ref().is_some_and(|hanging| hanging.connection == connection) {
            self.settle(journal);
        }
    }

    /// Kills every connection of former owners. A COMMIT that hangs is decided even if none is found.
    pub(super) fn kill_all(&mut self, journal: &Journal) {
        if !self.dice.chance(self.faults.unkilled) {
            self.live.clear();
        }
        self.settle(journal);
    }

    fn settle(&mut self, journal: &Journal) {
        if self.dice.chance(500) {
            self.land(journal);
        } else {
            self.hanging = None;
        }
    }

    /// A COMMIT that hung takes effect.
    pub(super) fn land(&mut self, journal: &Journal) {
        if let Some(hanging) = self.hanging.take() {
            self.coverage.unknown_done += 1;
            self.begin_unflushed();
            self.apply(journal, &hanging.batch, hanging.asked, hanging.author);
        }
    }

    /// Whether a batch passes the fence.
    pub(super) fn passes(&self, batch: &Batch, author: Author) -> bool {
        let fence = self.tables.fence;
        fence.epoch == author.epoch
            && fence.incarnation == author.incarnation
            && fence.batch + 1 == batch.number
    }

    /// Commits a batch.
    pub(super) fn apply(&mut self, journal: &Journal, batch: &Batch, asked: Moment, author: Author) {
        let fence = self.tables.fence;
        let applied = self.tables.apply(batch);
        self.coverage.dormant_dropped += applied.dormant_dropped;
        self.coverage.purged += batch.purges.len() as u64;
        self.coverage.cancelled += (batch.cancels.len() + batch.dead_letter_cancels.len()) as u64;
        self.coverage.operated += batch.updates.iter().filter(|row| row.is_operated).count() as u64;
        self.coverage.updated += batch.updates.iter().filter(|row| !row.is_operated).count() as u64;
        self.coverage.redriven += batch.redrives.len() as u64;
        self.coverage.resets += u64::from(applied.resets);
        self.coverage.dead_letters_deleted += batch.dead_letter_deletes.len() as u64;
        self.coverage.dead_letters_kept += batch.dead_letter_keeps.len() as u64;
        let (epoch, process) = (author.epoch, author.process);
        let done = journal.note(format_args!(
            "shard {}: commit {} of process {process}, epoch {epoch}: {}",
            self.id,
            batch.number,
            Summary(&applied.changes)
        ));
        for (invariant, what) in applied.violations {
            journal.note(format_args!("VIOLATION: {invariant}: {what}"));
            self.violations.push((invariant, what));
        }
        self.log.push(CommitRecord {
            asked,
            done,
            process,
            epoch,
            incarnation: author.incarnation,
            fence_epoch: fence.epoch,
            fence_incarnation: fence.incarnation,
            number: batch.number,
            time: self.tables.fence.marks.time,
            topics: batch.new_topics.clone(),
            resets: applied.resets,
            changes: applied.changes,
        });
    }
}

/// A short text for the journal.
struct Summary<'a>(&'a [Change]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|change| match change {
            Change::Inserted(row) => write!(f, "+{} ", row.key.seq.0),
            Change::Leased(entry) => write!(f, "lease {}.{} ", entry.seq.0, entry.delivery()),
            Change::Moved(entry) => write!(f, "move {}.{} ", entry.seq.0, entry.delivery()),
            Change::Closed(entry) => write!(f, "close {}.{} ", entry.seq.0, entry.delivery()),
            Change::Promoted(seq) => write!(f, "promote {} ", seq.0),
            Change::PutOff(seq, to) => write!(f, "put {} off until {to:?} ", seq.0),
            Change::Requeued(requeue) => write!(f, "requeue {} ", requeue.seq.0),
            Change::DeadLettered(letter) => write!(f, "dead {} ", letter.seq.0),
            Change::DeadLetterDeleted(letter) => write!(f, "-dead {} ", letter.seq.0),
            Change::Deleted(row) => write!(f, "-{} ", row.key.seq.0),
            Change::Purged(row) => write!(f, "purge {} ", row.key.seq.0),
            Change::DeadLetterPurged(seq) => write!(f, "purge dead {} ", seq.0),
            Change::Cancelled(row) => write!(f, "cancel {} ", row.key.seq.0),
            Change::DeadLetterCancelled(seq) => write!(f, "cancel dead {} ", seq.0),
            Change::Redriven(row) => write!(f, "redrive {} ", row.key.seq.0),
            Change::Updated(row) => write!(f, "update {} ", row.key.seq.0),
            Change::Operated(row) => write!(f, "operate {} ", row.key.seq.0),
        })
    }
}
