//! Writes what operations and changes of single items do, and how far operations are.

use crate::{
    batch::Batch,
    error::StoreError,
    operation::{OperationId, OperationProgress, OperationRow, Redrive, pack_operation, pack_position},
    sql::{attributes::PackedAttributes, dialect::Dialect, row_counts, statement::Statement, value::Value},
};

use super::times;
use crate::batch::DueKey;

/// The columns of [`OperationProgress`], in its order.
const PROGRESS: [&str; 10] = [
    "as_of",
    "as_of_time",
    "as_of_batch",
    "position",
    "scanned",
    "matched",
    "changed",
    "skipped",
    "failed",
    "ended_at",
];

/// Deletes items and dead letters, and makes dead letters items again.
pub(super) fn effects(
    batch: &Batch,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<Vec<Statement>, StoreError> {
    let items = batch.purges.iter().chain(&batch.cancels).copied().collect();
    let mut statements = row_counts::by_keys(dialect, "DELETE FROM item", "seq", items);
    for redrive in &batch.redrives {
        statements.push(back(redrive)?);
    }
    let expiry =
        |redrive: &Redrive| Some(DueKey { at: redrive.attributes.expires_at?, seq: redrive.key.seq });
    statements.extend(times::expiry(batch.redrives.iter().filter_map(expiry).collect(), statement_bytes));
    let redriven = batch.redrives.iter().map(|redrive| redrive.key.seq);
    let gone = batch.dead_letter_purges.iter().chain(&batch.dead_letter_cancels).copied();
    let gone = gone.chain(redriven).collect();
    statements.extend(row_counts::by_keys(dialect, "DELETE FROM dead_letter", "seq", gone));
    Ok(statements)
}

/// Copies a dead letter to the items.
fn back(redrive: &Redrive) -> Result<Statement, StoreError> {
    let sql = "INSERT INTO item (seq, topic, state, priority, rank_us, deliveries, failures, attributes, \
               metadata, payload) \
               SELECT seq, ?, 0, priority, ?, deliveries, ?, ?, metadata, payload \
               FROM dead_letter WHERE seq = ?";
    let values = vec![
        redrive.topic.into(),
        redrive.key.rank.into(),
        redrive.attributes.failures.into(),
        PackedAttributes::redriven(
            &redrive.packed,
            redrive.attributes.expires_at,
            redrive.attributes.redrives,
        )?,
        redrive.key.seq.into(),
    ];
    Ok(Statement::new(sql, values))
}

/// Writes the shard's parts of operations.
pub(super) fn parts(
    batch: &Batch,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<Vec<Statement>, StoreError> {
    let columns: Vec<&str> = ["id", "spec"].into_iter().chain(PROGRESS).collect();
    let row = |OperationRow { spec, progress }: &OperationRow| -> Vec<Value> {
        let mut values = vec![spec.id.0.as_slice().into(), pack_operation(spec).into()];
        values.extend(progress_values(progress));
        values
    };
    let rows = batch.operations.iter().map(row).collect();
    let mut statements = row_counts::insert("REPLACE", "operation", &columns, rows, statement_bytes);
    let update = |(id, progress): &(OperationId, OperationProgress)| {
        let sets: Vec<String> = PROGRESS.iter().map(|column| format!("{column} = ?")).collect();
        let sql = format!("UPDATE operation SET {} WHERE id = ?", sets.join(", "));
        let mut values = progress_values(progress);
        values.push(id.0.as_slice().into());
        Statement::new(sql, values)
    };
    statements.extend(batch.operation_progress.iter().map(update));
    let delete = |id: &OperationId| {
        let bound = dialect.bound("id", 1);
        let sql = format!("DELETE FROM operation WHERE id = ?{bound}");
        Statement::new(sql, vec![id.0.as_slice().into()])
    };
    statements.extend(batch.operation_deletes.iter().map(delete));
    Ok(statements)
}

fn progress_values(progress: &OperationProgress) -> Vec<Value> {
    let OperationProgress { as_of, as_of_time, as_of_batch, .. } = *progress;
    let OperationProgress { scanned, matched, changed, skipped, failed, ended_at, .. } = *progress;
    vec![
        as_of.into(),
        as_of_time.into(),
        as_of_batch.into(),
        pack_position(progress).into(),
        scanned.into(),
        matched.into(),
        changed.into(),
        skipped.into(),
        failed.into(),
        ended_at.map_or(Value::Null, Value::from),
    ]
}
