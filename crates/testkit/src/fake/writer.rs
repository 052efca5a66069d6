//! Writes batches to a fake shard.

use std::time::Duration;

use async_trait::async_trait;
use forebay_store::{Batch, Checkpoint, CommitError, ErrorClass, ItemRow, Outcome, StoreError, Writer};
use forebay_types::{Seq, Timestamp};

use super::{
    db::{Author, Db, Hanging, POISON, State},
    faults::CommitOutcome,
    journal::Moment,
    process::Process,
    store_bug::StoreBug,
};

/// The most bytes of metadata that a row takes.
const METADATA_BYTES_MAX: usize = u16::MAX as usize;

/// The connection that writes batches.
pub(super) struct FakeWriter {
    /// The shard.
    pub db: Db,
    /// The process that writes.
    pub process: Process,
    /// The owner whose batches it writes.
    pub author: Author,
    /// Its connection.
    pub connection: u64,
}

#[async_trait]
impl Writer for FakeWriter {
    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let asked = self.db.journal.last();
        let (before, after, outcome) = {
            let state = &mut *self.db.lock();
            state.in_flight = Some(self.connection);
            state.commits += 1;
            let rows = Duration::from_micros(state.faults.row_us * rows(batch));
            let before = state.faults.pause(&mut state.dice, state.faults.commit_ms) + rows;
            let after = state.dice.millis(state.faults.answer_ms);
            (before, after, state.faults.commit_outcome(&mut state.dice))
        };
        let breaks = self.process.breaks();
        tokio::time::sleep(before).await;
        if self.process.breaks() != breaks {
            return self.broken_off(batch, asked, outcome).await;
        }
        self.process.gate().await;
        let mut result = self.attempt(batch, asked, outcome);
        tokio::time::sleep(after).await;
        self.process.gate().await;
        if self.process.breaks() != breaks && result.is_ok() {
            self.db.lock().disconnect(self.connection);
            result = unknown();
        }
        if let Err(error) = &result {
            self.db.note(&self.process, format_args!("batch {}: {error}", batch.number));
        }
        result
    }

    async fn resolve(&mut self, number: u64) -> Result<Outcome, StoreError> {
        self.db.operate(&self.process, "resolve", |faults| faults.resolve_fails).await?;
        let state = &mut *self.db.lock();
        state.kill(&self.db.journal, self.connection);
        self.connection = state.connect();
        if state.bug == Some(StoreBug::ResolvedAsCommitted) {
            // The batch is lost, and the fence says that it was committed.
            let fence = &mut state.tables.fence;
            fence.batch = fence.batch.max(number);
        }
        let fence = state.tables.fence;
        let outcome = if (fence.epoch, fence.incarnation) != (self.author.epoch, self.author.incarnation) {
            Outcome::Foreign
        } else if fence.batch >= number && state.bug != Some(StoreBug::ResolvedAsLost) {
            Outcome::Committed
        } else {
            Outcome::NotCommitted
        };
        self.db.note(&self.process, format_args!("batch {number} is {outcome:?}"));
        if outcome == Outcome::Committed && state.on_disk.is_some() && state.dice.chance(state.faults.forgets)
        {
            self.restart_soon(state);
        }
        Ok(outcome)
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        self.db.operate(&self.process, "release", |faults| faults.read_fails).await?;
        let state = &mut *self.db.lock();
        let fence = state.tables.fence;
        if (fence.epoch, fence.incarnation) == (self.author.epoch, self.author.incarnation) {
            state.tables.address.clear();
        }
        Ok(())
    }
}

impl FakeWriter {
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
                state.hanging = Some(Hanging { connection, batch: batch.clone(), asked, author });
                state.disconnect(self.connection);
                self.land_later(state);
                unknown()
            }
        }
    }

    /// What a server checks before COMMIT, in its order: the fence comes last.
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
        let full = state.faults.disk_full && !batch.inserts.is_empty()
            || state.faults.disk_full_for_leases && !batch.leases.is_empty();
        if full {
            return rolled_back(ErrorClass::DiskFull, "the disk is full");
        }
        if is_poisoned(batch) {
            state.coverage.poisoned += 1;
            return rolled_back(ErrorClass::Poison, "a row cannot be stored");
        }
        let stored = |row: &&ItemRow| state.tables.items.contains_key(&row.key.seq);
        if let Some(row) = batch.inserts.iter().find(stored) {
            // An owner that was replaced cannot know better.
            if state.passes(batch, self.author) {
                state.violations.push(("NO-PHANTOM", format!("item {} was inserted twice", row.key.seq.0)));
            }
            return rolled_back(ErrorClass::Disconnected, "duplicate key");
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

    /// The process lost its connection, or died, while COMMIT was on its way. It may take effect even so.
    async fn broken_off(
        &self,
        batch: &Batch,
        asked: Moment,
        outcome: CommitOutcome,
    ) -> Result<(), CommitError> {
        let arrives = self.db.lock().dice.chance(600);
        if arrives {
            let _ = self.attempt(batch, asked, outcome);
        }
        {
            let state = &mut *self.db.lock();
            state.in_flight = None;
            state.disconnect(self.connection);
            state.coverage.unknown += 1;
            state.coverage.unknown_done += u64::from(arrives);
        }
        self.process.gate().await;
        self.db.note(&self.process, format_args!("batch {}: the connection broke", batch.number));
        unknown()
    }

    /// Lets the server restart in a moment, unless a commit returns before that.
    fn restart_soon(&self, state: &mut State) {
        let (db, span) = (self.db.clone(), state.dice.millis((0, 30)));
        tokio::spawn(async move {
            tokio::time::sleep(span).await;
            db.lock().restart(&db.journal);
        });
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
fn unknown() -> Result<(), CommitError> {
    Err(CommitError::Unknown(StoreError::new(ErrorClass::Disconnected, "COMMIT lost")))
}

/// Rows that a batch changes.
fn rows(batch: &Batch) -> u64 {
    let Batch { inserts, promotes, requeues, deletes, dead_letters, leases, .. } = batch;
    let items = inserts.len() + promotes.len() + requeues.len() + deletes.len();
    (items + dead_letters.len() + leases.len()) as u64
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
