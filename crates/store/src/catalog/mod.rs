//! The catalog of a cluster: its shards, its nodes, and which node should own which shard. It is a schema of
//! its own, in MySQL, MariaDB or SQLite.
//!
//! `interface.rs` has the verbs. `verbs.rs` carries them out over any kind of connection, and `change/` has
//! those that change something. The connections are in `mysql/catalog.rs` and `sqlite/catalog.rs`.

mod audit;
mod audit_rows;
mod call;
mod change;
mod columns;
mod connection;
mod error;
mod identity;
mod image;
mod interface;
mod read;
mod read_policy;
mod root_bounds;
mod rows;
mod session;
mod session_rows;
mod sessions;
mod shard_url;
mod token_rows;
mod tokens;
mod verbs;

pub use audit_rows::{AuditEnd, AuditId, AuditOutcome, AuditQuery, AuditRecord, PrincipalKind};
pub(crate) use connection::{Connections, Connector};
pub use error::CatalogError;
pub use image::{CatalogImage, ImageVersions};
pub use interface::Catalog;
pub use root_bounds::RootBounds;
pub use rows::{
    Assignment, Beat, CatalogChanges, CatalogNode, CatalogShard, CatalogShardState, CatalogView, Home,
    JoinOutcome, NodeReport, PolicyBounds, PolicyOutcome, PolicyRemoval, PolicyWish, SettingsDocument,
    SettingsSnapshot, SettingsWish, Sighting, Versions,
};
pub(crate) use session::CatalogSession;
pub use session_rows::{NewSession, SessionBounds, SessionRow};
pub use shard_url::check as check_shard_url;
pub use token_rows::{
    NewToken, TokenAddOutcome, TokenBounds, TokenChange, TokenChangeOutcome, TokenMaker, TokenRow, Tokens,
    descendants,
};
