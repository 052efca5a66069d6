//! Errors of a shard, sorted by how to handle them.

/// How to handle an error. `mysql/error.rs` and `sqlite/error.rs` map the databases' numbers to classes.
///
/// The first four classes leave the connection usable and the batch certainly rolled back. After any other
/// class, a writer connects again and reads the fence before it repeats the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// A conflict rolled the transaction back. Repeat it on the same connection.
    Replay,
    /// A row cannot be stored. Find it by halving the batch.
    Poison,
    /// A row has a key that is there already. The owner gives each key out once: so the shard has another
    /// owner, or its fence is behind its rows.
    Duplicate,
    /// The disk is full. Refuse new items and try again later.
    DiskFull,
    /// The schema is missing, has an unsupported version, or holds rows that this program never writes. At
    /// startup the shard is refused.
    Schema,
    /// The server is overloaded or shutting down. The statement had no effect, and the session keeps its
    /// connection. Try again later.
    Unavailable,
    /// The server takes no writes, or another server answers at the address. It will not pass on these
    /// connections: the shard is taken over anew, through new ones.
    NotPrimary,
    /// There is no connection. Connect again.
    Disconnected,
    /// All connections of this process for reading the shard are in use. That says nothing of the database.
    NoConnection,
    /// An error that this program does not know. It leaves the connection's state in doubt, so the session
    /// drops it. Whoever tries again does so a few times only: nobody knows whether that helps.
    Unrecognized,
}

impl ErrorClass {
    /// Whether all shards of a server have it alike.
    pub fn is_of_server(self) -> bool {
        matches!(self, Self::Unavailable | Self::NotPrimary | Self::Disconnected)
    }

    /// Whether the connection can't be used any more.
    pub(crate) fn breaks_connection(self) -> bool {
        matches!(self, Self::Disconnected | Self::NotPrimary | Self::Unrecognized)
    }
}

/// A statement or a read that failed and changed nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// How to handle it.
    pub class: ErrorClass,
    /// The message of the server or of this crate.
    pub message: String,
}

impl StoreError {
    /// An error of a class, with its message.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}

/// Why a batch was not committed, or may not have been.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A statement failed before COMMIT was sent. Everything is rolled back.
    #[error("batch rolled back: {0}")]
    RolledBack(StoreError),
    /// The fence does not match this owner and batch. Everything is rolled back. The shard may have a new
    /// owner.
    #[error("the fence has moved")]
    FenceMoved,
    /// COMMIT was sent and failed. Call `Writer::resolve` to learn the outcome.
    #[error("outcome unknown: {0}")]
    Unknown(StoreError),
}

impl CommitError {
    /// A constraint violation in the fence statement means that the fence has moved.
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
    /// The database reported an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A newer program has migrated the schema, and this one may not use it any more.
    #[error(
        "the schema has version {found}, for programs that know version {oldest}; this program supports \
         versions up to {known}: run a newer one"
    )]
    TooNew {
        /// The schema's version.
        found: u32,
        /// The version that the oldest program that may use the schema knows.
        oldest: u32,
        /// The newest version that this program supports.
        known: u32,
    },
}
