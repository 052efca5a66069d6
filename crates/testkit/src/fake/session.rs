//! A connection as the server sees it: what becomes of a batch that was sent over it, whatever becomes of
//! the process that sent it.

use std::time::Duration;

use forebay_store::{Batch, Checkpoint, CommitError, ErrorClass, ItemRow, StoreError};
use forebay_types::{Seq, Timestamp};
use tokio::sync::oneshot;

use super::{
    db::{Author, Db, HangingCommit, POISON, State},
    faults::CommitOutcome,
    journal::Moment,
    process::Process,
    store_bug::StoreBug,
    tables::Tables,
};

/// The most bytes of metadata that a row takes.
const METADATA_BYTES_MAX: usize = u16::MAX as usize;

/// An owner's connection for writing.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// The shard.
    pub db: Db,
    /// The process that writes.
    pub process: Process,
    /// The owner whose batches it writes.
    pub author: Author,
    /// Its number.
    pub connection: u64,
}

impl Session {
    /// Takes a batch in, and answers after `span`.
    pub fn receive(
        &self,
        batch: &Batch,
        span: Duration,
        outcome: CommitOutcome,
    ) -> oneshot::Receiver<Result<(), CommitError>> {
        let asked = self.db.journal.last();
        let (session, batch) = (self.clone(), batch.clone());
        let (answer, answered) = oneshot::channel();
        let breaks = self.process.breaks();
        tokio::spawn(async move {
            tokio::time::sleep(span).await;
            if session.process.breaks() == breaks {
                // Messages that a process sends while it is cut off arrive later.
                session.process.reached_or_died().await;
            }
            let result = match session.process.breaks() == breaks {
                true => session.attempt(&batch, asked, outcome),
                false => session.broken_off(&batch, asked, outcome),
            };
            // The process may be gone.
            let _ = answer.send(result);
        });
        answered
    }

    /// The batch reaches the server.
    fn attempt(&self, batch: &Batch, asked: Moment, outcome: CommitOutcome) -> Result<(), CommitError> {
        let state = &mut *self.db.lock();
        state.in_flight = None;
        self.refuse(state, batch, outcome)?;
        match outcome {
            CommitOutcome::Done | CommitOutcome::RolledBack(_) => {
                if let Some(result) = self.planted(state, batch, asked) {
                    return result;
                }
                state.apply(&self.db.journal, batch, asked, self.author);
                state.flush();
                let whole = state.unsplit.take().filter(|(author, _)| *author == self.author);
                state.coverage.split += u64::from(whole.is_some_and(|(_, whole)| rows(batch) < whole));
                Ok(())
            }
            CommitOutcome::LostBefore => {
                state.coverage.unknown += 1;
                state.disconnect(self.connection);
                unknown()
            }
            CommitOutcome::LostAfter => {
                state.coverage.unknown += 1;
                state.coverage.unknown_done += 1;
                state.disconnect(self.connection);
                state.begin_unflushed();
                state.apply(&self.db.journal, batch, asked, self.author);
                unknown()
            }
            CommitOutcome::Hangs => {
                state.coverage.unknown += 1;
                let (connection, author) = (self.connection, self.author);
                state.hanging = Some(HangingCommit { connection, batch: batch.clone(), asked, author });
                state.disconnect(self.connection);
                self.land_later(state);
                unknown()
            }
        }
    }

    /// Refuses a batch as a server does before COMMIT, in its order: the fence comes last.
    fn refuse(&self, state: &mut State, batch: &Batch, outcome: CommitOutcome) -> Result<(), CommitError> {
        let rolled_back = |class, what: &str| Err(CommitError::RolledBack(StoreError::new(class, what)));
        if !state.lives(self.connection) {
            return rolled_back(ErrorClass::Disconnected, "connection lost");
        }
        if state.hanging.is_some() {
            // The hanging COMMIT holds the row lock of the fence.
            return rolled_back(ErrorClass::Replay, "lock wait timeout");
        }
        if let CommitOutcome::RolledBack(class) = outcome {
            state.coverage.replayed += 1;
            if !matches!(class, ErrorClass::Replay | ErrorClass::DiskFull) {
                state.disconnect(self.connection);
            }
            return rolled_back(class, "rolled back by chance");
        }
        let stores_items = !batch.inserts.is_empty() || !batch.redrives.is_empty();
        let full = state.faults.disk_full && stores_items
            || state.faults.disk_full_for_leases && !batch.leases.is_empty();
        if full {
            state.coverage.leases_refused += u64::from(!stores_items);
            return rolled_back(ErrorClass::DiskFull, "the disk is full");
        }
        if is_poisoned(batch) {
            state.coverage.poisoned += 1;
            state.unsplit = Some((self.author, rows(batch)));
            return rolled_back(ErrorClass::Poison, "a row cannot be stored");
        }
        let stored = |row: &&ItemRow| state.tables.items.contains_key(&row.key.seq);
        if let Some(row) = batch.inserts.iter().find(stored) {
            // An owner that was replaced cannot know better.
            if !state.passes(batch, self.author) {
                state.coverage.met_rows += 1;
            } else {
                state.violations.push(("NO-PHANTOM", format!("item {} was inserted twice", row.key.seq.0)));
            }
            return rolled_back(ErrorClass::Duplicate, "duplicate key");
        }
        // A lease row, and what a batch counts, have its number.
        let Tables { leases, deltas, .. } = &state.tables;
        let leased = !batch.leases.is_empty() && leases.contains_key(&batch.number);
        if leased || !batch.count_deltas.is_empty() && deltas.contains_key(&batch.number) {
            return rolled_back(ErrorClass::Duplicate, "duplicate key");
        }
        if batch.dedupes.iter().any(|entry| !state.tables.generations.contains_key(&entry.generation)) {
            let what = "the dedupe generation of a key is missing".to_owned();
            state.violations.push(("IDEMPOTENT-ENQUEUE", what));
            return rolled_back(ErrorClass::Schema, "no such table");
        }
        if !state.passes(batch, self.author) && state.bug != Some(StoreBug::FenceNotChecked) {
            state.coverage.fenced += 1;
            return Err(CommitError::FenceMoved);
        }
        Ok(())
    }

    /// The process lost its connection, or died, while the batch was on its way. It may take effect even so.
    fn broken_off(&self, batch: &Batch, asked: Moment, outcome: CommitOutcome) -> Result<(), CommitError> {
        let arrives = self.db.lock().dice.chance(600);
        let refused = matches!(outcome, CommitOutcome::RolledBack(_));
        let outcome = if refused { outcome } else { CommitOutcome::Done };
        let done = arrives && self.attempt(batch, asked, outcome).is_ok();
        let state = &mut *self.db.lock();
        state.in_flight = None;
        state.disconnect(self.connection);
        state.coverage.unknown += 1;
        state.coverage.unknown_done += u64::from(done);
        self.db.note(&self.process, format_args!("batch {}: the connection broke", batch.number));
        unknown()
    }

    /// Lets a COMMIT that hangs take effect after a while, unless its connection is killed before.
    fn land_later(&self, state: &mut State) {
        let (db, connection) = (self.db.clone(), self.connection);
        let span = state.dice.millis((10, 6_000));
        tokio::spawn(async move {
            tokio::time::sleep(span).await;
            let state = &mut *db.lock();
            if state.hanging.as_ref().is_some_and(|hanging| hanging.connection == connection) {
                state.land(&db.journal);
            }
        });
    }

    /// Commits a changed batch, if a planted bug strikes.
    fn planted(&self, state: &mut State, batch: &Batch, asked: Moment) -> Option<Result<(), CommitError>> {
        let mut changed = batch.clone();
        match state.bug? {
            StoreBug::CommitNotDone if state.dice.chance(30) => {
                // Everything but the fence and the new topics is lost.
                changed = Batch { number: batch.number, marks: batch.marks, ..Batch::default() };
                changed.new_topics.clone_from(&batch.new_topics);
            }
            StoreBug::RollbackNotDone if state.dice.chance(50) && !batch.inserts.is_empty() => {
                for row in &batch.inserts {
                    let row = ItemRow { key: other_number(row), ..row.clone() };
                    state.tables.keep(row.clone());
                }
                let error = StoreError::new(ErrorClass::Replay, "said to be rolled back");
                return Some(Err(CommitError::RolledBack(error)));
            }
            StoreBug::LeaseNotWritten if state.dice.chance(100) => changed.leases.clear(),
            StoreBug::CheckpointTooFar => {
                for Checkpoint { at, .. } in &mut changed.checkpoints {
                    *at = Timestamp::from_micros(at.as_micros() + 60_000_000);
                }
            }
            _ => return None,
        }
        state.apply(&self.db.journal, &changed, asked, self.author);
        state.flush();
        Some(Ok(()))
    }
}

/// COMMIT was sent, and no answer came.
pub(super) fn unknown() -> Result<(), CommitError> {
    Err(CommitError::Unknown(StoreError::new(ErrorClass::Disconnected, "COMMIT lost")))
}

fn other_number(row: &ItemRow) -> forebay_types::Key {
    forebay_types::Key { seq: Seq(row.key.seq.0 + (1 << 40)), ..row.key }
}

/// Whether the batch has a row that the server refuses: a marked one or, as in MySQL, too much metadata.
fn is_poisoned(batch: &Batch) -> bool {
    let metadata = batch.requeues.iter().filter_map(|requeue| requeue.metadata.as_deref());
    let letters = batch.dead_letters.iter().filter_map(|letter| letter.metadata.as_deref());
    let rows = batch.inserts.iter();
    let marked = rows.clone().any(|row| row.body.payload.starts_with(POISON));
    let mut all = metadata.chain(letters).chain(rows.map(|row| row.body.metadata.as_ref()));
    marked || all.any(|bytes| bytes.starts_with(POISON) || bytes.len() > METADATA_BYTES_MAX)
}

/// Rows that a batch changes.
pub(super) fn rows(batch: &Batch) -> u64 {
    let Batch { inserts, promotes, requeues, deletes, dead_letters, leases, .. } = batch;
    let items = inserts.len() + promotes.len() + requeues.len() + deletes.len();
    (items + dead_letters.len() + leases.len()) as u64
}
