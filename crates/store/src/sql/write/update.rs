//! Gives items that wait other values. Their earlier rows of times are deleted before this: the new ones may
//! have the same keys.

use forebay_types::{Seq, State, Timestamp};

use super::times;
use crate::{
    batch::{Batch, DueKey, UpdatedRow},
    error::StoreError,
    sql::{attributes::PackedAttributes, dialect::Dialect, row_counts, statement::Statement, value::Value},
};

/// Columns that an update sets. Each update sets the first ones.
const SETS: [&str; 4] = ["state = {}", "priority = {}", "rank_us = {}", "attributes = {}"];
/// How many of [`SETS`] are the item's place.
const PLACE: usize = 3;

pub(super) fn items(
    batch: &Batch,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<Vec<Statement>, StoreError> {
    // Metadata may be large: then the item has a statement of its own.
    let (mut moved, mut changed, mut statements) = (Vec::new(), Vec::new(), Vec::new());
    for row in &batch.updates {
        let (key, values) = (row.key.seq.0.cast_signed(), values(row)?);
        match (&row.metadata, &row.attributes) {
            (Some(metadata), _) => statements.push(whole(row.key.seq, values, metadata)),
            (None, Some(_)) => changed.push((key, values)),
            (None, None) => moved.push((key, values)),
        }
    }
    statements.extend(row_counts::update_each(dialect, "item", "seq", &SETS[..PLACE], moved));
    statements.extend(row_counts::update_each(dialect, "item", "seq", &SETS, changed));
    let due = |row: &UpdatedRow| DueKey { at: Timestamp::from_micros(row.key.rank), seq: row.key.seq };
    let scheduled = batch.updates.iter().filter(|row| row.schedules && row.state == State::Scheduled);
    statements.extend(times::schedule(scheduled.map(due).collect(), statement_bytes));
    let expiry = |row: &UpdatedRow| {
        let at = row.attributes.as_ref().filter(|_| row.expires)?.attributes.expires_at?;
        Some(DueKey { at, seq: row.key.seq })
    };
    statements.extend(times::expiry(batch.updates.iter().filter_map(expiry).collect(), statement_bytes));
    Ok(statements)
}

/// The values of [`SETS`], without attributes if the item keeps those that it has.
fn values(row: &UpdatedRow) -> Result<Vec<Value>, StoreError> {
    let mut values = vec![row.state.into(), row.key.priority.into(), row.key.rank.into()];
    if let Some(new) = &row.attributes {
        values.push(PackedAttributes::of(new.attributes, new.bytes, new.headers.clone())?);
    }
    Ok(values)
}

/// An update with metadata.
fn whole(seq: Seq, mut values: Vec<Value>, metadata: &[u8]) -> Statement {
    let sets: Vec<_> = SETS[..values.len()].iter().map(|set| set.replace("{}", "?")).collect();
    values.extend([metadata.into(), seq.into()]);
    let sql = format!("UPDATE item SET {}, metadata = ? WHERE seq = ?", sets.join(", "));
    Statement::new(sql, values)
}
