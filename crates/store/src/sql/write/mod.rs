//! A batch as statements, in the order in which its fields stand.

mod counts;
mod dedupe;
mod insert;
mod lease;
mod remove;
mod requeue;

use super::{Dialect, Statement};
use crate::{Batch, StoreError};

/// Everything but the fence.
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
    all.extend(requeue::requeue(batch, dialect, statement_bytes));
    all.extend(remove::bury(batch, dialect));
    all.extend(remove::delete(batch, dialect));
    all.extend(lease::end(batch, dialect, statement_bytes));
    all.extend(dedupe::remember(batch, statement_bytes)?);
    all.extend(counts::drop_topics(batch, dialect));
    all.extend(counts::count(batch, dialect)?);
    all.extend(dedupe::topology_history(batch)?);
    all.extend(counts::checkpoints(batch, statement_bytes));
    Ok(all)
}
