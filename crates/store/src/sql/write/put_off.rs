//! Puts scheduled items off.

use super::times;
use crate::{
    batch::{Batch, DueKey, PutOff},
    sql::{dialect::Dialect, row_counts, statement::Statement},
};

/// Gives scheduled items a later time.
pub(super) fn items(batch: &Batch, dialect: Dialect, statement_bytes: usize) -> Vec<Statement> {
    let row = |row: &PutOff| (row.seq.0.cast_signed(), vec![row.to.as_micros().into()]);
    let rows = batch.put_offs.iter().map(row).collect();
    let mut statements = row_counts::update_each(dialect, "item", "seq", &["rank_us = {}"], rows);
    let from: Vec<DueKey> = batch.put_offs.iter().map(|row| DueKey { at: row.from, seq: row.seq }).collect();
    statements.extend(times::delete_schedule(&from, dialect));
    let to = batch.put_offs.iter().map(|row| DueKey { at: row.to, seq: row.seq }).collect();
    statements.extend(times::schedule(to, statement_bytes));
    statements
}
