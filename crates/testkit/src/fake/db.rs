//! The database of one fake shard: rows, connections, what goes wrong, and a log of what was committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_store::{Batch, ErrorClass, ReadyRow, StoreError, TopicRow};
use forebay_types::{Incarnation, ShardId, Timestamp, TopicId};

use super::{Change, Dice, Faults, Journal, Lie, Moment, Process, Tables, apply::Wrong};

/// Items whose payload begins so can't be stored.
pub const POISON: &[u8] = b"\xffPOISON";

/// A committed batch, for the checks that follow a run.
#[derive(Debug, Clone)]
pub struct Committed {
    /// When the engine asked for it.
    pub asked: Moment,
    /// When it had its effect.
    pub done: Moment,
    /// Which process asked.
    pub process: usize,
    /// The epoch of the owner that wrote it.
    pub epoch: u64,
    /// The owner that wrote it.
    pub incarnation: Incarnation,
    /// The epoch of the fence when it had its effect.
    pub fence_epoch: u64,
    /// The owner that the fence named then.
    pub fence_incarnation: Incarnation,
    /// The batch's number.
    pub number: u64,
    /// Topics that it made.
    pub topics: Vec<TopicRow>,
    /// What it changed, in the order of its application.
    pub changes: Vec<Change>,
}

/// A change of the owner.
#[derive(Debug, Clone, Copy)]
pub struct TakenOver {
    /// When.
    pub done: Moment,
    /// By which process.
    pub process: usize,
    /// From then on.
    pub epoch: u64,
    /// The new owner.
    pub incarnation: Incarnation,
}

/// What a run saw of the things that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sights {
    /// Commits whose answer was lost.
    pub unknown: u64,
    /// Of these, the ones that had their effect.
    pub unknown_done: u64,
    /// Take-overs while a batch of the old owner was under way.
    pub take_over_in_flight: u64,
    /// Batches that failed for a row that can't be stored.
    pub poisoned: u64,
    /// Batches refused by the fence.
    pub fenced: u64,
    /// Reads of ready items during which a batch was committed.
    pub raced: u64,
    /// Batches rolled back by a conflict.
    pub replayed: u64,
}

/// A batch whose COMMIT hangs.
#[derive(Debug)]
pub(super) struct Hanging {
    pub connection: u64,
    pub batch: Batch,
    pub asked: Moment,
    pub author: Author,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Author {
    pub process: usize,
    pub epoch: u64,
    pub incarnation: Incarnation,
}

/// Everything about one fake shard; outlives the engines that use it.
#[derive(Debug)]
pub struct State {
    id: ShardId,
    /// Which server it says that it is kept by; one of its own unless told otherwise.
    pub server: String,
    /// What is committed.
    pub tables: Tables,
    /// How it behaves from now on.
    pub faults: Faults,
    /// What it does wrong on purpose, to test the checker.
    pub lie: Option<Lie>,
    /// How far the server's clock is from the true time, in microseconds.
    pub clock_offset: i64,
    /// Every committed batch.
    pub log: Vec<Committed>,
    /// Every take-over.
    pub owners: Vec<TakenOver>,
    /// What an engine did that it must not.
    pub wrong: Vec<Wrong>,
    /// What was seen.
    pub sights: Sights,
    pub(super) dice: Dice,
    /// What the last read of each topic could have seen, for [`Lie::ReadShowsThePast`].
    pub(super) past: BTreeMap<TopicId, Vec<ReadyRow>>,
    pub(super) migrated: bool,
    pub(super) hanging: Option<Hanging>,
    pub(super) under_way: Option<u64>,
    next_connection: u64,
    live: BTreeSet<u64>,
}

/// A handle on a fake shard's database. Clones reach the same one.
#[derive(Debug, Clone)]
pub struct Db {
    /// Which shard it is.
    pub id: ShardId,
    /// Where events are written down.
    pub journal: Arc<Journal>,
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
            lie: None,
            clock_offset: 0,
            log: Vec::new(),
            owners: Vec::new(),
            wrong: Vec::new(),
            sights: Sights::default(),
            dice,
            past: BTreeMap::new(),
            migrated: false,
            hanging: None,
            under_way: None,
            next_connection: 1,
            live: BTreeSet::new(),
        };
        Self { id, journal, state: Arc::new(Mutex::new(state)) }
    }

    /// The database, for a look or a change. Never held over an await.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server's clock.
    pub fn server_clock(&self) -> Timestamp {
        let offset = self.lock().clock_offset;
        Timestamp::from_micros(self.journal.now().as_micros() + offset)
    }

    /// Waits as long as an operation takes, then until the process reaches the shard.
    pub(super) async fn pass(&self, process: &Process, span: Duration) {
        if !span.is_zero() {
            tokio::time::sleep(span).await;
        }
        process.gate().await;
    }

    /// The delay and then the failure of an operation other than a commit.
    pub(super) async fn operate(
        &self,
        process: &Process,
        name: &str,
        fails: impl Fn(&Faults) -> u32,
    ) -> Result<(), StoreError> {
        let (span, failed) = {
            let state = &mut *self.lock();
            let span = state.faults.pause(&mut state.dice, state.faults.read_ms);
            (span, state.faults.down || state.dice.chance(fails(&state.faults)))
        };
        self.pass(process, span).await;
        if failed {
            self.note(process, format_args!("{name} failed"));
            return Err(StoreError::new(ErrorClass::Disconnected, format!("{name}: connection lost")));
        }
        Ok(())
    }

    pub(super) fn note(&self, process: &Process, what: fmt::Arguments<'_>) -> Moment {
        self.journal.note(format_args!("shard {} process {}: {what}", self.id, process.number))
    }
}

impl State {
    pub(super) fn connect(&mut self) -> u64 {
        self.next_connection += 1;
        self.live.insert(self.next_connection);
        self.next_connection
    }

    pub(super) fn lives(&self, connection: u64) -> bool {
        self.live.contains(&connection)
    }

    /// Ends a connection from the client's side: a COMMIT that hangs on it goes on hanging.
    pub(super) fn disconnect(&mut self, connection: u64) {
        self.live.remove(&connection);
    }

    /// KILL: a COMMIT that hangs is decided now, one way or the other.
    pub(super) fn kill(&mut self, journal: &Journal, connection: u64) {
        self.live.remove(&connection);
        if self.hanging.as_ref().is_some_and(|hanging| hanging.connection == connection) {
            self.settle(journal);
        }
    }

    /// Ends every connection of former owners; a COMMIT that hangs is waited for even where none is found.
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

    /// A COMMIT that hung has its effect.
    pub(super) fn land(&mut self, journal: &Journal) {
        if let Some(hanging) = self.hanging.take() {
            self.sights.unknown_done += 1;
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

    pub(super) fn apply(&mut self, journal: &Journal, batch: &Batch, asked: Moment, author: Author) {
        let fence = self.tables.fence;
        let applied = self.tables.apply(batch);
        let (epoch, process) = (author.epoch, author.process);
        let done = journal.note(format_args!(
            "shard {}: commit {} of process {process}, epoch {epoch}: {}",
            self.id,
            batch.number,
            Brief(&applied.changes)
        ));
        for (invariant, what) in applied.wrong {
            journal.note(format_args!("WRONG: {invariant}: {what}"));
            self.wrong.push((invariant, what));
        }
        self.log.push(Committed {
            asked,
            done,
            process,
            epoch,
            incarnation: author.incarnation,
            fence_epoch: fence.epoch,
            fence_incarnation: fence.incarnation,
            number: batch.number,
            topics: batch.new_topics.clone(),
            changes: applied.changes,
        });
    }
}

/// Changes in a few words.
struct Brief<'a>(&'a [Change]);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in self.0 {
            match change {
                Change::Inserted(row) => write!(f, "+{} ", row.key.seq.0)?,
                Change::Leased(entry) => write!(f, "lease {}.{} ", entry.seq.0, entry.delivery)?,
                Change::Moved(entry) => write!(f, "move {}.{} ", entry.seq.0, entry.delivery)?,
                Change::Closed(entry) => write!(f, "close {}.{} ", entry.seq.0, entry.delivery)?,
                Change::Promoted(seq) => write!(f, "due {} ", seq.0)?,
                Change::Requeued(requeue) => write!(f, "back {} ", requeue.seq.0)?,
                Change::Buried(letter) => write!(f, "dead {} ", letter.seq.0)?,
                Change::Deleted(row) => write!(f, "-{} ", row.key.seq.0)?,
            }
        }
        Ok(())
    }
}
