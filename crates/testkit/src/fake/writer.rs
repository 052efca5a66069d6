//! Writes batches to a fake shard.

use std::time::Duration;

use async_trait::async_trait;
use forebay_store::{Batch, CommitError, ErrorClass, Outcome, StoreError, Writer};

use super::{
    db::{Db, State},
    faults::CommitOutcome,
    owners::ReleaseRecord,
    session::{Session, rows, unknown},
    store_bug::StoreBug,
};

/// The connection that writes batches.
pub(super) struct FakeWriter {
    /// Its connection.
    pub session: Session,
}

#[async_trait]
impl Writer for FakeWriter {
    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        {
            let Session { db, connection, .. } = &mut self.session;
            let state = &mut *db.lock();
            if !state.lives(*connection) && state.dice.chance(500) {
                // It was found closed before anything was sent over it.
                *connection = state.connect();
            }
        }
        let Session { db, process, .. } = &self.session;
        let (before, after, outcome) = {
            let state = &mut *db.lock();
            state.in_flight = Some(self.session.connection);
            state.commits += 1;
            let dear = state.faults.dear_row_us * (batch.requeues.len() + batch.new_topics.len()) as u64;
            let rows = Duration::from_micros(state.faults.row_us * rows(batch) + dear);
            let before = state.faults.pause(&mut state.dice, state.faults.commit_ms) + rows;
            let after = state.dice.millis(state.faults.answer_ms);
            let outcome = match state.refuses.contains(&process.number) {
                true => CommitOutcome::RolledBack(ErrorClass::Disconnected),
                false => state.faults.commit_outcome(&mut state.dice),
            };
            (before, after, outcome)
        };
        let dropped = process.watch(|| db.lock().coverage.dropped_commits += 1);
        let breaks = process.breaks();
        let mut result = self.session.receive(batch, before, outcome).await.unwrap_or_else(|_| unknown());
        tokio::time::sleep(after).await;
        process.gate().await;
        if process.breaks() != breaks && result.is_ok() {
            db.lock().disconnect(self.session.connection);
            result = unknown();
        }
        dropped.over();
        if let Err(error) = &result {
            db.note(process, format_args!("batch {}: {error}", batch.number));
        }
        result
    }

    async fn resolve(&mut self, number: u64) -> Result<Outcome, StoreError> {
        let Session { db, process, author, connection } = &mut self.session;
        db.operate(process, "resolve", |faults| faults.resolve_fails).await?;
        let state = &mut *db.lock();
        state.kill(&db.journal, *connection);
        *connection = state.connect();
        if state.bug == Some(StoreBug::ResolvedAsCommitted) {
            // The batch is lost, and the fence says that it was committed.
            let fence = &mut state.tables.fence;
            fence.batch = fence.batch.max(number);
        }
        let fence = state.tables.fence;
        let outcome = match Outcome::of(&fence, author.epoch, author.incarnation, number) {
            Outcome::Committed if state.bug == Some(StoreBug::ResolvedAsLost) => Outcome::NotCommitted,
            outcome => outcome,
        };
        db.note(process, format_args!("batch {number} is {outcome:?}"));
        if outcome == Outcome::Committed && state.on_disk.is_some() && state.dice.chance(state.faults.forgets)
        {
            restart_soon(db, state);
        }
        Ok(outcome)
    }

    async fn release(&mut self, successor: &str) -> Result<(), StoreError> {
        let Session { db, process, author, .. } = &self.session;
        db.operate(process, "release", |faults| faults.read_fails).await?;
        {
            let state = &mut *db.lock();
            let fence = state.tables.fence;
            if (fence.epoch, fence.incarnation) == (author.epoch, author.incarnation) {
                state.tables.renewals += 1;
                state.tables.address.clear();
                state.tables.successor = successor.to_owned();
                let done = db.note(process, format_args!("release of epoch {}", author.epoch));
                state.releases.push(ReleaseRecord { done, process: process.number });
            }
        }
        db.answer(process).await;
        Ok(())
    }
}

/// Lets the server restart in a moment, unless a commit returns before that.
fn restart_soon(db: &Db, state: &mut State) {
    let (db, span) = (db.clone(), state.dice.millis((0, 30)));
    tokio::spawn(async move {
        tokio::time::sleep(span).await;
        db.lock().restart(&db.journal);
    });
}
