//! What a fake shard may do wrong on purpose, so that the checker can be seen to notice.

/// A planted bug on the store's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The fence is not looked at: a batch of a former owner is committed.
    FenceNotChecked,
    /// A batch is answered as committed, and is not there.
    CommitNotDone,
    /// A batch is answered as rolled back, and its items are there (with numbers of their own).
    RollbackNotDone,
    /// A batch of unknown outcome is said to be committed.
    ResolvedAsCommitted,
    /// A batch of unknown outcome is said not to be there, and is.
    ResolvedAsLost,
    /// The lease row of a batch is left out.
    LeaseNotWritten,
    /// A checkpoint is moved past a live row.
    CheckpointTooFar,
    /// A read of ready items leaves one out.
    ReadSkipsARow,
    /// A read of ready items gives rows that were there before.
    ReadShowsThePast,
    /// A new owner is not told of a lease.
    LeaseForgottenAtLoad,
    /// A new owner is told that nothing is ready.
    CountsForgottenAtLoad,
    /// A dedupe key is not found again.
    DedupeForgotten,
    /// A sweep's read gives a row before its time.
    DueTooEarly,
    /// A body is read with a byte changed.
    BodyChanged,
}
