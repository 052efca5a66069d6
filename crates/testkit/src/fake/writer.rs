//! The connection that writes a fake shard.

use async_trait::async_trait;
use forebay_store::{Batch, CommitError, ErrorClass, ItemRow, Outcome, StoreError, Writer};
use forebay_types::{Seq, Timestamp};

use super::{
    Db, Lie, Moment, POISON, Process,
    db::{Author, Hanging, State},
    faults::Fate,
};

/// The most bytes of metadata that a row takes.
const METADATA: usize = u16::MAX as usize;

pub(super) struct FakeWriter {
    pub db: Db,
    pub process: Process,
    pub author: Author,
    pub connection: u64,
}

#[async_trait]
impl Writer for FakeWriter {
    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let asked = self.db.journal.last();
        let (before, after, fate) = {
            let state = &mut *self.db.lock();
            state.under_way = Some(self.connection);
            let before = state.faults.pause(&mut state.dice, state.faults.commit_ms);
            let after = state.dice.millis(state.faults.answer_ms);
            (before, after, state.faults.fate(&mut state.dice))
        };
        self.db.pass(&self.process, before).await;
        let result = self.attempt(batch, asked, fate);
        self.db.pass(&self.process, after).await;
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
        let fence = state.tables.fence;
        let outcome = if (fence.epoch, fence.incarnation) != (self.author.epoch, self.author.incarnation) {
            Outcome::Foreign
        } else if (fence.batch >= number || state.lie == Some(Lie::ResolvedAsCommitted))
            && state.lie != Some(Lie::ResolvedAsLost)
        {
            Outcome::Committed
        } else {
            Outcome::NotCommitted
        };
        self.db.note(&self.process, format_args!("batch {number} is {outcome:?}"));
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
    fn attempt(&self, batch: &Batch, asked: Moment, fate: Fate) -> Result<(), CommitError> {
        let state = &mut *self.db.lock();
        state.under_way = None;
        let rolled_back = |class, what: &str| Err(CommitError::RolledBack(StoreError::new(class, what)));
        if !state.lives(self.connection) {
            return rolled_back(ErrorClass::Disconnected, "connection lost");
        }
        if state.hanging.is_some() {
            // The row lock of the fence is held.
            return rolled_back(ErrorClass::Replay, "lock wait time-out");
        }
        if let Fate::RolledBack(class) = fate {
            state.sights.replayed += 1;
            if !matches!(class, ErrorClass::Replay | ErrorClass::BackOff | ErrorClass::DiskFull) {
                state.disconnect(self.connection);
            }
            return rolled_back(class, "rolled back by chance");
        }
        if state.faults.disk_full && !batch.inserts.is_empty() {
            return rolled_back(ErrorClass::DiskFull, "no room on the disk");
        }
        if poisoned(batch) {
            state.sights.poisoned += 1;
            return rolled_back(ErrorClass::Poison, "a row can't be stored");
        }
        let there = |row: &&ItemRow| state.tables.items.contains_key(&row.key.seq);
        if let Some(row) = batch.inserts.iter().find(there) {
            // An owner that was replaced can't know.
            if state.passes(batch, self.author) {
                state.wrong.push(("NO-PHANTOM", format!("item {} inserted twice", row.key.seq.0)));
            }
            return rolled_back(ErrorClass::Other, "duplicate key");
        }
        if batch.dedupes.iter().any(|(number, ..)| !state.tables.generations.contains_key(number)) {
            let what = "a key for a dedupe generation that is not there".to_owned();
            state.wrong.push(("IDEMPOTENT-ENQUEUE", what));
            return rolled_back(ErrorClass::Schema, "no such table");
        }
        if !state.passes(batch, self.author) && state.lie != Some(Lie::FenceNotChecked) {
            state.sights.fenced += 1;
            return Err(CommitError::FenceMoved);
        }
        let unknown = || Err(CommitError::Unknown(StoreError::new(ErrorClass::Disconnected, "COMMIT lost")));
        match fate {
            Fate::Done | Fate::RolledBack(_) => {
                if let Some(result) = self.lie(state, batch, asked) {
                    return result;
                }
                state.apply(&self.db.journal, batch, asked, self.author);
                Ok(())
            }
            Fate::LostBefore => {
                state.sights.unknown += 1;
                state.disconnect(self.connection);
                unknown()
            }
            Fate::LostAfter => {
                state.sights.unknown += 1;
                state.sights.unknown_done += 1;
                state.disconnect(self.connection);
                state.apply(&self.db.journal, batch, asked, self.author);
                unknown()
            }
            Fate::Hangs => {
                state.sights.unknown += 1;
                let (connection, author) = (self.connection, self.author);
                state.hanging = Some(Hanging { connection, batch: batch.clone(), asked, author });
                state.disconnect(self.connection);
                self.land_later(state);
                unknown()
            }
        }
    }

    /// A COMMIT that hangs has its effect after a while, unless it is killed before.
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

    /// A planted bug has its way with the batch.
    fn lie(&self, state: &mut State, batch: &Batch, asked: Moment) -> Option<Result<(), CommitError>> {
        let mut changed = batch.clone();
        match state.lie? {
            Lie::CommitNotDone if state.dice.chance(30) => {
                // Everything but the fence and the marks is forgotten.
                changed = Batch { number: batch.number, marks: batch.marks, ..Batch::default() };
                changed.new_topics.clone_from(&batch.new_topics);
            }
            Lie::RollbackNotDone if state.dice.chance(50) && !batch.inserts.is_empty() => {
                for row in &batch.inserts {
                    let row = ItemRow { key: other_number(row), ..row.clone() };
                    state.tables.keep(row.clone());
                }
                let error = StoreError::new(ErrorClass::Replay, "said to be rolled back");
                return Some(Err(CommitError::RolledBack(error)));
            }
            Lie::LeaseNotWritten if state.dice.chance(100) => changed.leases.clear(),
            Lie::CheckpointTooFar => {
                for (_, at) in &mut changed.checkpoints {
                    *at = Timestamp::from_micros(at.as_micros() + 60_000_000);
                }
            }
            _ => return None,
        }
        state.apply(&self.db.journal, &changed, asked, self.author);
        Some(Ok(()))
    }
}

fn other_number(row: &ItemRow) -> forebay_types::Key {
    forebay_types::Key { seq: Seq(row.key.seq.0 + (1 << 40)), ..row.key }
}

/// Rows that the server refuses: marked ones, and, as in MySQL, metadata that is too long for its column.
fn poisoned(batch: &Batch) -> bool {
    let metadata = batch.requeues.iter().filter_map(|requeue| requeue.metadata.as_deref());
    let letters = batch.dead_letters.iter().filter_map(|letter| letter.metadata.as_deref());
    let rows = batch.inserts.iter();
    let marked = rows.clone().any(|row| row.body.payload.starts_with(POISON));
    let mut all = metadata.chain(letters).chain(rows.map(|row| row.body.metadata.as_ref()));
    marked || all.any(|bytes| bytes.starts_with(POISON) || bytes.len() > METADATA)
}
