//! A batch as statements, in the order of its fields.

mod counts;
mod dedupe;
mod insert;
mod lease;
mod operations;
mod put_off;
mod remove;
mod requeue;
mod times;
mod update;

use super::{dialect::Dialect, statement::Statement};
use crate::{batch::Batch, error::StoreError};

/// All statements of a batch except the fence's.
pub(crate) fn statements(
    batch: &Batch,
    dialect: Dialect,
    statement_bytes: usize,
) -> Result<Vec<Statement>, StoreError> {
    let mut all = Vec::new();
    all.extend(counts::new_topics(batch, statement_bytes));
    all.extend(insert::items(&batch.inserts, statement_bytes)?);
    all.extend(lease::begin(batch)?);
    all.extend(remove::promote(batch, dialect));
    all.extend(put_off::items(batch, dialect, statement_bytes));
    all.extend(requeue::requeue(batch, dialect, statement_bytes)?);
    all.extend(remove::dead_letters(batch, dialect)?);
    all.extend(remove::delete(batch, dialect));
    all.extend(operations::effects(batch, dialect, statement_bytes)?);
    all.extend(update::items(batch, dialect, statement_bytes)?);
    all.extend(lease::end(batch, dialect, statement_bytes));
    all.extend(dedupe::keys(batch, statement_bytes)?);
    all.extend(counts::drop_topics(batch, dialect));
    all.extend(counts::dormant_losses(batch));
    all.extend(counts::namespace_tallies(batch, dialect, statement_bytes)?);
    all.extend(counts::count(batch, dialect)?);
    all.extend(dedupe::topology_history(batch)?);
    all.extend(counts::checkpoints(batch, statement_bytes));
    all.extend(operations::parts(batch, dialect, statement_bytes)?);
    Ok(all)
}
