//! Planted bugs on the store's side. They show that the checker notices them.

/// A planted bug of a fake shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreBug {
    /// The fence is not checked: a batch of a former owner is committed.
    FenceNotChecked,
    /// A batch is reported as committed and is not stored.
    CommitNotDone,
    /// A batch is reported as rolled back, and its items are stored under other numbers.
    RollbackNotDone,
    /// A batch of unknown outcome is reported as committed.
    ResolvedAsCommitted,
    /// A batch of unknown outcome is reported as not committed although it was.
    ResolvedAsLost,
    /// The lease row of a batch is not stored.
    LeaseNotWritten,
    /// A checkpoint is moved past a live row.
    CheckpointTooFar,
    /// A read of ready items omits one.
    ReadSkipsARow,
    /// A read of ready items returns older rows.
    ReadShowsThePast,
    /// A new owner does not learn of a lease.
    LeaseForgottenAtLoad,
    /// A new owner learns that no item is ready.
    CountsForgottenAtLoad,
    /// A dedupe key is not found.
    DedupeForgotten,
    /// A sweep's read returns a row before its time.
    DueTooEarly,
    /// A body is read with a changed byte.
    BodyChanged,
}
