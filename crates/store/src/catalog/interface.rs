//! The interface of every kind of catalog.

use std::collections::BTreeMap;

use async_trait::async_trait;
use forebay_types::{
    ClusterId, Incarnation, Namespace, NodeName, PolicyRow, SettingsRow, ShardId, Timestamp, TopicName,
};

use super::{
    audit_rows::{AuditEnd, AuditId, AuditQuery, AuditRecord},
    error::CatalogError,
    rows::{
        Beat, CatalogChanges, CatalogNode, CatalogShardState, Home, JoinOutcome, NodeReport, PolicyOutcome,
        PolicyRemoval, PolicyWish, SettingsDocument, SettingsSnapshot, SettingsWish, Sighting, Versions,
    },
    session_rows::{NewSession, SessionRow},
    token_rows::{NewToken, TokenAddOutcome, TokenChange, TokenChangeOutcome, TokenRow, Tokens},
};
use crate::error::{MigrateError, StoreError};

/// The catalog of a cluster, as any of its nodes can reach it. It is cheap to create and connects when first
/// used.
///
/// It decides nothing. It keeps what nodes and operators write, each change in one transaction. If a change
/// fails with [`Disconnected`](crate::ErrorClass::Disconnected), it may have been made or not: read the
/// catalog again. A conflict or a lost connection before the end of a transaction is repeated here.
#[async_trait]
pub trait Catalog: Send + Sync + 'static {
    /// The cluster. `None`: there is no schema yet.
    async fn cluster(&self) -> Result<Option<ClusterId>, StoreError>;

    /// Creates or upgrades the schema under a lock. Returns the versions that were applied. A new catalog
    /// gets the cluster id `cluster_if_new`; one that exists keeps its own.
    async fn migrate(&self, cluster_if_new: ClusterId) -> Result<Vec<u32>, MigrateError>;

    /// Fails with [`ErrorClass::Schema`](crate::ErrorClass::Schema) unless the schema has all that this
    /// program needs, and this program may use it.
    async fn check(&self) -> Result<(), StoreError>;

    /// Reads the versions and the nodes, and those other rows whose version is not the known one, lower ones
    /// included. All of it is of one moment.
    async fn read(&self, known: Versions) -> Result<CatalogChanges, StoreError>;

    /// Adds a node under its name. If another process has the name, it is replaced only if it is as
    /// `expected`: the caller has seen its counter stand still for long enough to call it dead. A node that
    /// replaces another keeps the counter and the draining flag of the row. Repeating it is harmless.
    async fn join(&self, node: &CatalogNode, expected: Option<Sighting>) -> Result<JoinOutcome, StoreError>;

    /// Counts a beat of a process and writes its report. After a lost connection it may be counted twice,
    /// which is harmless.
    async fn beat(
        &self,
        name: &NodeName,
        incarnation: Incarnation,
        report: &NodeReport,
    ) -> Result<Beat, StoreError>;

    /// Removes a node, if the process still has the name. Returns whether it had.
    async fn leave(&self, name: &NodeName, incarnation: Incarnation) -> Result<bool, StoreError>;

    /// Says whether a node should own shards. Returns `false` if there is no node of that name.
    async fn set_draining(&self, name: &NodeName, draining: bool) -> Result<bool, StoreError>;

    /// Changes homes of shards; `None` takes a shard's home away. Returns `false`, and changes nothing, if
    /// the assignment's version is not `from_version`.
    async fn assign(
        &self,
        from_version: u64,
        changes: &BTreeMap<ShardId, Option<Home>>,
    ) -> Result<bool, StoreError>;

    /// Adds an active shard. Without a number it gets one that no shard has had.
    async fn add_shard(&self, url: &str, id: Option<ShardId>) -> Result<ShardId, CatalogError>;

    /// Changes where a shard is, if the shards still have the version from which that was decided: else it is
    /// [`CatalogError::Stale`].
    async fn set_shard_url(&self, id: ShardId, url: &str, from_version: u64) -> Result<(), CatalogError>;

    /// Changes what operators want of a shard, if the shards still have the version from which they decided:
    /// else it is [`CatalogError::Stale`].
    async fn set_shard_state(
        &self,
        id: ShardId,
        state: CatalogShardState,
        from_version: u64,
    ) -> Result<(), CatalogError>;

    /// Removes a shard, and its home, if the shards still have the version from which that was decided: else
    /// it is [`CatalogError::Stale`]. Whether it may go is for the caller to know.
    async fn remove_shard(&self, id: ShardId, from_version: u64) -> Result<(), CatalogError>;

    /// Reads a policy. Without one it has version 0, or that of its removal.
    async fn policy(&self, name: &TopicName) -> Result<PolicyRow, StoreError>;

    /// Writes a policy, if its row has not changed meanwhile. A removed row is kept for a while, so that who
    /// reads what has changed learns of it.
    async fn put_policy(&self, wish: &PolicyWish) -> Result<PolicyOutcome, StoreError>;

    /// Reads settings. Without them they have version 0, or that of their removal.
    async fn settings(&self, name: &TopicName) -> Result<SettingsRow, StoreError>;

    /// Writes settings, if their row has not changed meanwhile. Policies and settings have one line of
    /// versions.
    async fn put_settings(&self, wish: &SettingsWish) -> Result<PolicyOutcome, StoreError>;

    /// Reads all settings of a namespace, or of all namespaces.
    async fn all_settings(&self, namespace: Option<&Namespace>) -> Result<SettingsSnapshot, StoreError>;

    /// Writes settings of many names in one change, if the snapshot from which they were made still has its
    /// version.
    async fn put_all_settings(&self, document: &SettingsDocument) -> Result<PolicyOutcome, StoreError>;

    /// Removes the policy and the settings of a topic, or all of a namespace, in one change. Returns its
    /// version. `None`: there was nothing, and nothing has changed.
    async fn remove_policies(&self, removal: &PolicyRemoval) -> Result<Option<u64>, StoreError>;

    /// Adds the record of a call. To repeat it before its end is harmless.
    async fn add_audit(&self, record: &AuditRecord) -> Result<(), StoreError>;

    /// Says how a call ended. Returns `false` if there is no such record, or its end is known.
    async fn end_audit(&self, id: AuditId, end: &AuditEnd) -> Result<bool, StoreError>;

    /// Reads records, the latest first.
    async fn audit(&self, query: &AuditQuery) -> Result<Vec<AuditRecord>, StoreError>;

    /// Deletes records of calls before a time: the oldest, and so many at most. Returns how many there were.
    async fn sweep_audit(&self, before: Timestamp, most: u32) -> Result<u64, StoreError>;

    /// Reads all tokens, if they have another version than the known one.
    async fn tokens(&self, known: u64) -> Result<Tokens, StoreError>;

    /// Reads tokens by id, from this one on, so many at most.
    async fn token_page(&self, from: &str, limit: u32) -> Result<Vec<TokenRow>, StoreError>;

    /// Adds a token.
    async fn add_token(&self, token: &NewToken) -> Result<TokenAddOutcome, StoreError>;

    /// Changes a token.
    async fn change_token(&self, id: &str, change: &TokenChange) -> Result<TokenChangeOutcome, StoreError>;

    /// Notes that a token was used in an hour, if no later one is noted.
    async fn note_token_use(&self, id: &str, hour: Timestamp) -> Result<(), StoreError>;

    /// Reads a session of a browser.
    async fn session(&self, id: &[u8; 32]) -> Result<Option<SessionRow>, StoreError>;

    /// Adds a session. To repeat it is harmless.
    async fn add_session(&self, session: &NewSession) -> Result<(), StoreError>;

    /// Notes that a session was used, if no later use is noted.
    async fn note_session_use(&self, id: &[u8; 32], now: Timestamp) -> Result<(), StoreError>;

    /// Removes a session, if it is there.
    async fn remove_session(&self, id: &[u8; 32]) -> Result<(), StoreError>;
}
