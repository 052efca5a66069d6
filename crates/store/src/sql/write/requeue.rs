//! Updates items that return to their topics after a delivery.

use forebay_types::{State, Timestamp};

use super::times;
use crate::{
    batch::{Batch, DueKey, Requeue},
    error::StoreError,
    sql::{dialect::Dialect, failures, row_counts, statement::Statement, value::Value},
};

/// Columns that are set for every item that returns.
const SETS: [&str; 4] = ["state = {}", "rank_us = {}", "deliveries = {}", "failures = {}"];

pub(super) fn requeue(
    batch: &Batch,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<Vec<Statement>, StoreError> {
    let (altered, same): (Vec<&Requeue>, Vec<&Requeue>) =
        batch.requeues.iter().partition(|back| back.metadata.is_some());
    let (failed, released): (Vec<&Requeue>, Vec<&Requeue>) =
        same.into_iter().partition(|back| back.failure.is_some());
    let row = |back: &Requeue| Ok((back.seq.0.cast_signed(), values(back)?));
    let rows = |some: Vec<&Requeue>| some.into_iter().map(row).collect::<Result<_, StoreError>>();
    let last_failures = format!("last_failures = {}", failures::with(dialect, "{}"));
    let [state, rank, deliveries, count] = SETS;
    let all_sets = [state, rank, deliveries, count, &last_failures];
    let mut statements = row_counts::update_each(dialect, "item", "seq", &SETS, rows(released)?);
    statements.extend(row_counts::update_each(dialect, "item", "seq", &all_sets, rows(failed)?));
    for back in altered {
        let sets = if back.failure.is_some() { &all_sets[..] } else { &SETS[..] };
        let sets = sets.join(", ").replace("{}", "?");
        let mut values = values(back)?;
        values.extend([back.metadata.as_deref().unwrap_or_default().into(), back.seq.into()]);
        let sql = format!("UPDATE item SET {sets}, metadata = ? WHERE seq = ?");
        statements.push(Statement::new(sql, values));
    }
    let scheduled = batch.requeues.iter().filter(|back| back.state == State::Scheduled);
    let keys = scheduled.map(|back| DueKey { at: Timestamp::from_micros(back.rank), seq: back.seq });
    statements.extend(times::schedule(keys.collect(), statement_bytes));
    Ok(statements)
}

/// The values of the assignments.
fn values(back: &Requeue) -> Result<Vec<Value>, StoreError> {
    let mut values = vec![back.state.into(), back.rank.into(), back.deliveries.into(), back.failures.into()];
    if let Some(failure) = &back.failure {
        values.push(failures::packed(failure)?);
    }
    Ok(values)
}
