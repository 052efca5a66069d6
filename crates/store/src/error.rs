//! What can go wrong at a shard, sorted by what is to be done about it.

/// What is to be done about an error. The server's numbers are sorted in `mysql/error.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Rolled back by a conflict: do the same again.
    Replay,
    /// The server has too much to do: do the same again later.
    BackOff,
    /// The server takes no writes any more: connect anew.
    RoleLost,
    /// The connection is gone.
    Disconnected,
    /// One of the rows can't be stored: find it by halving.
    Poison,
    /// No room on the disk.
    DiskFull,
    /// The schema is missing, of a version that this program does not know, or its rows make no sense.
    Schema,
    /// Anything else; treated like a lost connection.
    Other,
}

/// A statement or a read failed, and nothing was changed by it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What is to be done.
    pub class: ErrorClass,
    /// What the server said.
    pub message: String,
}

impl StoreError {
    /// From a class and what there is to say.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}

/// Why a batch was not, or may not have been, committed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A statement failed before COMMIT was sent; everything is rolled back.
    #[error("batch rolled back: {0}")]
    RolledBack(StoreError),
    /// The fence stands elsewhere; everything is rolled back. Somebody else may own the shard.
    #[error("the fence stands elsewhere")]
    FenceMoved,
    /// COMMIT was sent and failed: ask [`crate::Writer::resolve`] what became of it.
    #[error("outcome unknown: {0}")]
    Unknown(StoreError),
}

impl CommitError {
    /// The fence's own statement failed. A row that it can't store is how it says no.
    pub(crate) fn at_the_fence(error: StoreError) -> Self {
        match error.class {
            ErrorClass::Poison => Self::FenceMoved,
            _ => Self::RolledBack(error),
        }
    }
}

/// A migration failed.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The schema was written by a newer program.
    #[error("the schema is of version {found}, and this program knows versions up to {known}")]
    TooNew {
        /// What stands in the schema.
        found: u32,
        /// What this program knows.
        known: u32,
    },
}
