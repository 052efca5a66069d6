//! The shard's parts of operations: what is asked of them, what they read, and what a batch did of them.

use std::time::Duration;

use forebay_store::{OperationId, OperationKind, OperationRow};
use forebay_types::{Monotonic, Namespace, Reason, Refusal};

use crate::{
    api::{OperationItems, RETRY_AFTER},
    clock::Moment,
    shard::{
        OwnedShard,
        commit::in_flight::PlannedOperation,
        work::{OperationItem, OperationPage, OperationRead, OrderRequest},
    },
};

/// A batch with an operation's page takes longer, and calls wait for it. After it the shard has calls alone
/// for so many times as long, if it has any: so they keep four fifths of the shard's time.
const REST: u32 = 4;
/// The longest such pause, however long the commit took: its server may have been away.
const REST_MAX: Duration = Duration::from_secs(1);

/// The result of an operation's page.
pub(crate) struct PageOutcome {
    /// The kind of the operation.
    pub kind: OperationKind,
    /// The tenant of the items.
    pub namespace: Namespace,
    /// The items, by what became of them.
    pub items: OperationItems,
}

impl OwnedShard {
    /// An order waits for the next batch. The error says why the caller has to wait.
    pub fn order(&mut self, request: OrderRequest) -> Result<(), Refusal> {
        self.commit.disk.set_fertile();
        self.upkeep.operations.order(request).map_err(|_| {
            let message = format!("too many orders to operations wait in shard {}", self.id);
            Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER)
        })
    }

    /// The parts of operations.
    pub fn operations(&self) -> impl Iterator<Item = &OperationRow> {
        self.upkeep.operations.rows()
    }

    /// The part of an operation.
    pub fn operation(&self, id: OperationId) -> Option<&OperationRow> {
        self.upkeep.operations.get(id).map(|part| &part.row)
    }

    /// It has a part of an operation that this program can't read.
    pub fn has_unreadable(&self, id: OperationId) -> bool {
        self.upkeep.operations.is_unreadable(id)
    }

    /// Begins the read for an operation that is due, if any. `read` names it.
    pub fn begin_operation(&mut self, read: u64, node: Moment) -> Option<OperationRead> {
        // The dead letters of topics that are forgotten are counted by their namespaces, once those are
        // known.
        if !self.has_tallies() {
            return None;
        }
        let moment = self.tenure.time.moment(node);
        let (limit, topics) = (self.operation_rows(), &self.contents.topics);
        self.upkeep.operations.begin(read, moment, limit, &self.contents.leases, |name| topics.id_of(name))
    }

    /// A read for an operation ended; `None` if it failed.
    pub fn operation_read(&mut self, read: u64, items: Option<Vec<OperationItem>>, at: Monotonic) {
        self.commit.disk.set_fertile();
        let limit = self.operation_rows();
        self.upkeep.operations.found(read, limit, items, at);
    }

    /// Rows of one page: a quarter of a batch at most.
    pub(super) fn operation_rows(&self) -> usize {
        (self.settings.batch_rows / 4).clamp(1, self.settings.sweep_rows.max(1))
    }

    /// The batch with an operation's page did not happen. Returns the page.
    pub(in crate::shard) fn undo_operation(&mut self, planned: PlannedOperation) -> OperationPage {
        planned.effects.into_iter().for_each(|effect| self.undo_effect(effect));
        planned.page
    }

    /// An operation's page was committed. `shared`: calls were served by the same batch, or waited for it.
    /// Returns what it did.
    pub(in crate::shard) fn apply_operation(
        &mut self,
        planned: PlannedOperation,
        shared: bool,
        at: Monotonic,
    ) -> PageOutcome {
        let PlannedOperation { page, kind, namespace, progress, items, effects } = planned;
        effects.into_iter().for_each(|effect| self.apply_effect(effect));
        let rest = if shared { (self.tenure.commit_took * REST).min(REST_MAX) } else { Duration::ZERO };
        self.upkeep.operations.advance(page.id, progress, items.changed, at, rest);
        PageOutcome { kind, namespace, items }
    }
}
