//! The shard's part of an operation.

use forebay_store::{OperationId, OperationRow, OperationSpec};
use forebay_types::{Monotonic, Seq, Timestamp, filter::Filter};
use rustc_hash::FxHashSet;

/// The shard's part of an operation, as it is stored.
#[derive(Debug)]
pub(in crate::shard) struct Part {
    /// The row.
    pub row: OperationRow,
    /// The filter of the row. `None`: this program does not understand it. The part then waits for an owner
    /// that does: without its filter it would change all items.
    pub filter: Option<Filter>,
    /// Items that can't be changed, because the database refuses that.
    pub parked: FxHashSet<Seq>,
    /// Nothing is done before: so the rate is kept.
    pub not_before: Monotonic,
    /// When it had its last page, by a count of all pages.
    pub turn: u64,
}

impl Part {
    /// It has not ended.
    pub fn is_open(&self) -> bool {
        self.row.progress.ended_at.is_none()
    }

    /// When it began, and its id, if it waits for a program that understands its filter.
    pub fn not_understood(&self) -> Option<(Timestamp, OperationId)> {
        let OperationSpec { started_at, id, .. } = self.row.spec;
        (self.is_open() && self.filter.is_none()).then_some((started_at, id))
    }
}
