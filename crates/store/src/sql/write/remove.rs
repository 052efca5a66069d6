//! Promotes scheduled items, moves items to the dead letters, and deletes items.

use forebay_types::{Seq, Timestamp};

use super::times;
use crate::{
    batch::Batch,
    error::StoreError,
    sql::{dialect::Dialect, failures, row_counts, statement::Statement},
};

/// Changes the state from scheduled to ready.
pub(super) fn promote(batch: &Batch, dialect: Dialect) -> Vec<Statement> {
    let seqs: Vec<Seq> = batch.promotes.iter().map(|key| key.seq).collect();
    let mut statements = row_counts::by_keys(dialect, "UPDATE item SET state = 0", "seq", seqs);
    statements.extend(times::delete_schedule(&batch.promotes, dialect));
    statements
}

/// Copies items to the dead letters, then deletes them. Deletes dead letters, and keeps others for longer.
pub(super) fn dead_letters(batch: &Batch, dialect: Dialect) -> Result<Vec<Statement>, StoreError> {
    let mut statements = Vec::new();
    let last_failures = failures::with(dialect, "?");
    for dead in &batch.dead_letters {
        let mut values = vec![
            dead.deliveries.into(),
            dead.failures.into(),
            dead.reason.as_str().into(),
            dead.last_error.as_str().into(),
            dead.died_at.into(),
            dead.expires_at.into(),
        ];
        // Not COALESCE: a parameter that is NULL has no type to compare with a blob's.
        let metadata = match &dead.metadata {
            Some(metadata) => {
                values.push(metadata.as_slice().into());
                "?"
            }
            None => "metadata",
        };
        values.extend([failures::packed(&dead.failure)?, dead.seq.into()]);
        let sql = format!(
            "INSERT INTO dead_letter (seq, topic, priority, deliveries, failures, reason, last_error, \
             died_at, expires_at, attributes, metadata, payload, last_failures) \
             SELECT seq, topic, priority, ?, ?, ?, ?, ?, ?, attributes, {metadata}, payload, {last_failures} \
             FROM item WHERE seq = ?"
        );
        statements.push(Statement::new(sql, values));
    }
    let seqs = batch.dead_letters.iter().map(|dead| dead.seq).collect();
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM item", "seq", seqs));
    let deletes = batch.dead_letter_deletes.clone();
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM dead_letter", "seq", deletes));
    let keep = |(seq, until): &(Seq, Timestamp)| (seq.0.cast_signed(), vec![(*until).into()]);
    let keeps = batch.dead_letter_keeps.iter().map(keep).collect();
    statements.extend(row_counts::update_each(dialect, "dead_letter", "seq", &["expires_at = {}"], keeps));
    Ok(statements)
}

/// Deletes items and their rows in `schedule` and `expiry`.
pub(super) fn delete(batch: &Batch, dialect: Dialect) -> Vec<Statement> {
    let mut statements = row_counts::by_keys(dialect, "DELETE FROM item", "seq", batch.deletes.clone());
    statements.extend(times::delete_schedule(&batch.schedule_deletes, dialect));
    statements.extend(times::delete_expiry(&batch.expiry_deletes, dialect));
    statements
}
