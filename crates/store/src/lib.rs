//! One shard of Forebay, stored in MySQL, MariaDB or SQLite. No other crate contains SQL.
#![doc = include_str!("../README.md")]

mod batch;
mod catalog;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod looked;
mod mysql;
mod mysql_address;
mod names;
mod operation;
mod read_ahead;
mod rows;
mod shard;
mod sql;
mod sqlite;
mod tally;

pub use batch::{
    Batch, DeadLetter, DedupeEntry, DueKey, ItemRow, NewAttributes, PutOff, Requeue, UpdatedRow,
};
pub use catalog::{
    Assignment, AuditEnd, AuditId, AuditOutcome, AuditQuery, AuditRecord, Beat, Catalog, CatalogChanges,
    CatalogError, CatalogImage, CatalogNode, CatalogShard, CatalogShardState, CatalogView, Home,
    ImageVersions, JoinOutcome, NewSession, NewToken, NodeReport, PolicyBounds, PolicyOutcome, PolicyRemoval,
    PolicyWish, PrincipalKind, RootBounds, SessionBounds, SessionRow, SettingsDocument, SettingsSnapshot,
    SettingsWish, Sighting, TokenAddOutcome, TokenBounds, TokenChange, TokenChangeOutcome, TokenMaker,
    TokenRow, Tokens, Versions, check_shard_url, descendants,
};
pub use error::{CommitError, ErrorClass, MigrateError, StoreError};
pub use looked::{Death, DeathRow, StoredItem, StoredState};
pub use mysql::{MySqlCatalog, MySqlServers, MySqlShard};
pub use mysql_address::{MySqlOptions, Password, Tls};
pub use names::NameRange;
pub use operation::{
    OperationChange, OperationCursor, OperationFailure, OperationId, OperationIdError, OperationKind,
    OperationOrder, OperationPart, OperationProgress, OperationRow, OperationSpec, OperationUpdate,
    OperationWish, Redrive, pack_operation, pack_operation_part, pack_operation_row, unpack_operation,
    unpack_operation_part, unpack_operation_row,
};
pub use read_ahead::ReadAhead;
pub use rows::{
    Checkpoint, DeadRow, DedupeHit, DueItem, DueRow, Fence, HighWaterMarks, LeaseChange, LeaseEntry,
    LeaseRow, Observation, ReadyRow, Remains, Settings, ShardIdentity, ShardSnapshot, ShardTopology, Sweep,
    TopicCounts, TopicRow, WalkedRow,
};
pub use shard::{
    Claim, Heartbeat, ItemLocation, Outcome, ProbeOutcome, Reader, Renewal, Shard, ShardConnections, Writer,
};
pub use sqlite::{SqliteCatalog, SqliteShard};
pub use tally::{NamespaceTally, Tally, TopicTally};
