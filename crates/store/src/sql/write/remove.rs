//! Items leave where they are: they become due, go to the dead letters, or are removed.

use forebay_types::{Seq, Timestamp};

use crate::{
    Batch,
    sql::{Dialect, Statement, row_counts},
};

/// State scheduled → ready.
pub(super) fn promote(batch: &Batch, dialect: Dialect) -> Vec<Statement> {
    let seqs: Vec<Seq> = batch.promotes.iter().map(|(_, seq)| *seq).collect();
    let mut statements = row_counts::by_keys(dialect, "UPDATE item SET state = 0", "seq", seqs);
    statements.extend(unschedule(&batch.promotes, dialect));
    statements
}

/// Copies to the dead letters, then removes.
pub(super) fn bury(batch: &Batch, dialect: Dialect) -> Vec<Statement> {
    let mut statements = Vec::new();
    for dead in &batch.dead_letters {
        let mut values = vec![
            dead.deliveries.into(),
            dead.failures.into(),
            dead.reason.as_str().into(),
            dead.last_error.as_str().into(),
            dead.died_at.into(),
        ];
        // Two shapes instead of one COALESCE: a parameter that is NULL has no type to compare with a blob's.
        let metadata = match &dead.metadata {
            Some(metadata) => {
                values.push(metadata.as_slice().into());
                "?"
            }
            None => "metadata",
        };
        values.push(dead.seq.into());
        let sql = format!(
            "INSERT INTO dead_letter (seq, topic, priority, deliveries, failures, reason, last_error, died_at, \
             attributes, metadata, payload) \
             SELECT seq, topic, priority, ?, ?, ?, ?, ?, attributes, {metadata}, payload FROM item WHERE seq = ?"
        );
        statements.push(Statement::new(sql, values));
    }
    let seqs = batch.dead_letters.iter().map(|dead| dead.seq).collect();
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM item", "seq", seqs));
    statements
}

/// Items, and the rows that go with them.
pub(super) fn delete(batch: &Batch, dialect: Dialect) -> Vec<Statement> {
    let mut statements = row_counts::by_keys(dialect, "DELETE FROM item", "seq", batch.deletes.clone());
    statements.extend(unschedule(&batch.schedule_deletes, dialect));
    let expiry_deletes = batch.expiry_deletes.clone();
    statements.extend(row_counts::delete_pairs(dialect, "expiry", ["expires_at", "seq"], expiry_deletes));
    statements
}

fn unschedule(rows: &[(Timestamp, Seq)], dialect: Dialect) -> Vec<Statement> {
    row_counts::delete_pairs(dialect, "schedule", ["deliver_at", "seq"], rows.to_vec())
}
