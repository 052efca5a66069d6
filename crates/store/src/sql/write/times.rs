//! Writes the rows of `schedule` and `expiry`.

use crate::{
    batch::DueKey,
    sql::{dialect::Dialect, row_counts, statement::Statement},
};

/// Inserts `schedule` rows.
pub(super) fn schedule(keys: Vec<DueKey>, statement_bytes: usize) -> Vec<Statement> {
    insert("schedule", "deliver_at", keys, statement_bytes)
}

/// Inserts `expiry` rows.
pub(super) fn expiry(keys: Vec<DueKey>, statement_bytes: usize) -> Vec<Statement> {
    insert("expiry", "expires_at", keys, statement_bytes)
}

fn insert(table: &str, column: &str, mut keys: Vec<DueKey>, statement_bytes: usize) -> Vec<Statement> {
    keys.sort_unstable();
    let rows = keys.into_iter().map(|key| vec![key.at.into(), key.seq.into()]).collect();
    row_counts::insert("INSERT", table, &[column, "seq"], rows, statement_bytes)
}

/// Deletes `schedule` rows.
pub(super) fn delete_schedule(keys: &[DueKey], dialect: Dialect) -> Vec<Statement> {
    delete("schedule", "deliver_at", keys, dialect)
}

/// Deletes `expiry` rows.
pub(super) fn delete_expiry(keys: &[DueKey], dialect: Dialect) -> Vec<Statement> {
    delete("expiry", "expires_at", keys, dialect)
}

fn delete(table: &str, column: &str, keys: &[DueKey], dialect: Dialect) -> Vec<Statement> {
    let pairs = keys.iter().map(|key| (key.at, key.seq)).collect();
    row_counts::delete_pairs(dialect, table, [column, "seq"], pairs)
}
