//! Updates items that return to their topics after a delivery.

use forebay_types::{State, Timestamp};

use super::times;
use crate::{
    batch::{Batch, DueKey, Requeue},
    sql::{dialect::Dialect, row_counts, statement::Statement, value::Value},
};

const COLUMNS: [&str; 4] = ["state", "rank_us", "deliveries", "failures"];

pub(super) fn requeue(batch: &Batch, dialect: Dialect, statement_bytes: usize) -> Vec<Statement> {
    let values = |back: &Requeue| -> Vec<Value> {
        vec![back.state.into(), back.rank.into(), back.deliveries.into(), back.failures.into()]
    };
    let (altered, same): (Vec<&Requeue>, Vec<&Requeue>) =
        batch.requeues.iter().partition(|back| back.metadata.is_some());
    let rows = same.iter().map(|back| (back.seq.0.cast_signed(), values(back))).collect();
    let mut statements = row_counts::update_each(dialect, "item", "seq", &COLUMNS, rows);
    for back in altered {
        let metadata = back.metadata.as_deref().unwrap_or_default();
        let mut values = values(back);
        values.extend([metadata.into(), back.seq.into()]);
        let sql = "UPDATE item SET state = ?, rank_us = ?, deliveries = ?, failures = ?, metadata = ? \
                   WHERE seq = ?";
        statements.push(Statement::new(sql, values));
    }
    let scheduled = batch.requeues.iter().filter(|back| back.state == State::Scheduled);
    let keys = scheduled.map(|back| DueKey { at: Timestamp::from_micros(back.rank), seq: back.seq });
    statements.extend(times::schedule(keys.collect(), statement_bytes));
    statements
}
