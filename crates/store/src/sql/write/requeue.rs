//! Items go back after a delivery.

use forebay_types::{State, Timestamp};

use super::insert;
use crate::{
    Batch, Requeue,
    sql::{Dialect, Statement, Value, row_counts},
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
        let sql = "UPDATE item SET state = ?, rank_us = ?, deliveries = ?, failures = ?, metadata = ? WHERE seq = ?";
        statements.push(Statement::new(sql, values));
    }
    let waiting = batch.requeues.iter().filter(|back| back.state == State::Scheduled);
    let times = waiting.map(|back| (Timestamp::from_micros(back.rank), back.seq)).collect();
    statements.extend(insert::schedule(times, statement_bytes));
    statements
}
