//! Gives items that wait other values. Their earlier rows of times are deleted before this: the new ones may
//! have the same keys.

use forebay_types::{State, Timestamp};

use super::times;
use crate::{
    batch::{Batch, DueKey, UpdatedRow},
    error::StoreError,
    sql::{attributes::PackedAttributes, dialect::Dialect, row_counts, statement::Statement, value::Value},
};

/// What every update sets.
const SETS: [&str; 3] = ["state = {}", "priority = {}", "rank_us = {}"];

pub(super) fn items(
    batch: &Batch,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<Vec<Statement>, StoreError> {
    let (plain, more): (Vec<&UpdatedRow>, Vec<&UpdatedRow>) =
        batch.updates.iter().partition(|row| row.metadata.is_none() && row.attributes.is_none());
    let each = plain.into_iter().map(|row| (row.key.seq.0.cast_signed(), place(row).to_vec())).collect();
    let mut statements = row_counts::update_each(dialect, "item", "seq", &SETS, each);
    for row in more {
        statements.push(whole(row)?);
    }
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

/// The values of [`SETS`].
fn place(row: &UpdatedRow) -> [Value; 3] {
    [row.state.into(), row.key.priority.into(), row.key.rank.into()]
}

/// An update with metadata or attributes.
fn whole(row: &UpdatedRow) -> Result<Statement, StoreError> {
    let mut sets = SETS.map(|set| set.replace("{}", "?")).to_vec();
    let mut values = place(row).to_vec();
    if let Some(metadata) = &row.metadata {
        sets.push("metadata = ?".to_owned());
        values.push(metadata.as_slice().into());
    }
    if let Some(new) = &row.attributes {
        sets.push("attributes = ?".to_owned());
        values.push(PackedAttributes::of(new.attributes, new.bytes, new.headers.clone())?);
    }
    values.push(row.key.seq.into());
    Ok(Statement::new(format!("UPDATE item SET {} WHERE seq = ?", sets.join(", ")), values))
}
