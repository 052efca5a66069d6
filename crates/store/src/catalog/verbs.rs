//! The verbs of a catalog over any kind of connection.

use std::collections::BTreeMap;

use async_trait::async_trait;
use forebay_types::{
    ClusterId, Incarnation, Namespace, NodeName, PolicyRow, SettingsRow, ShardId, Timestamp, TopicName,
};

use super::{
    audit::{AddAudit, EndAudit, ReadAudit, SweepAudit},
    audit_rows::{AuditEnd, AuditId, AuditQuery, AuditRecord},
    call::{Change, Transaction},
    change::{
        AddShard, Assign, Join, Leave, PutAllSettings, PutPolicy, PutSettings, RemovePolicies, RemoveShard,
        SendBeat, SetDraining, SetShardState, SetShardUrl,
    },
    connection::Connector,
    error::CatalogError,
    identity::{CheckVersion, IfNew, ReadCluster},
    interface::Catalog,
    read::ReadChanges,
    read_policy::{ReadAllSettings, ReadPolicy, ReadSettings},
    rows::{
        Beat, CatalogChanges, CatalogNode, CatalogShardState, Home, JoinOutcome, NodeReport, PolicyOutcome,
        PolicyRemoval, PolicyWish, SettingsDocument, SettingsSnapshot, SettingsWish, Sighting, Versions,
    },
    session_rows::{NewSession, SessionRow},
    sessions::{AddSession, NoteSessionUse, ReadSession, RemoveSession},
    shard_url,
    token_rows::{NewToken, TokenAddOutcome, TokenChange, TokenChangeOutcome, TokenRow, Tokens},
    tokens::{AddToken, ChangeToken, NoteUse, ReadTokenPage, ReadTokens},
};
use crate::error::{ErrorClass, MigrateError, StoreError};

async fn change<C: Change>(connector: &impl Connector, change: C) -> Result<C::Answer, StoreError> {
    connector.connections().changes.run(connector, &Transaction(change)).await
}

#[async_trait]
impl<C: Connector> Catalog for C {
    async fn cluster(&self) -> Result<Option<ClusterId>, StoreError> {
        match self.connections().changes.run(self, &ReadCluster).await {
            // There is no database or no file.
            Err(error) if error.class == ErrorClass::Schema => Ok(None),
            cluster => cluster,
        }
    }

    async fn migrate(&self, cluster_if_new: ClusterId) -> Result<Vec<u32>, MigrateError> {
        let applied = Connector::migrate(self, &IfNew(cluster_if_new)).await?;
        tracing::info!(?applied, "the catalog's schema is up to date");
        Ok(applied)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.connections().changes.run(self, &CheckVersion(self.schema())).await
    }

    async fn read(&self, known: Versions) -> Result<CatalogChanges, StoreError> {
        self.connections().beats.run(self, &ReadChanges(known)).await
    }

    async fn join(&self, node: &CatalogNode, expected: Option<Sighting>) -> Result<JoinOutcome, StoreError> {
        change(self, Join { node, expected }).await
    }

    async fn beat(
        &self,
        name: &NodeName,
        incarnation: Incarnation,
        report: &NodeReport,
    ) -> Result<Beat, StoreError> {
        self.connections().beats.run(self, &SendBeat { name, incarnation, report }).await
    }

    async fn leave(&self, name: &NodeName, incarnation: Incarnation) -> Result<bool, StoreError> {
        change(self, Leave { name, incarnation }).await
    }

    async fn set_draining(&self, name: &NodeName, draining: bool) -> Result<bool, StoreError> {
        change(self, SetDraining { name, draining }).await
    }

    async fn assign(
        &self,
        from_version: u64,
        changes: &BTreeMap<ShardId, Option<Home>>,
    ) -> Result<bool, StoreError> {
        change(self, Assign { from_version, changes }).await
    }

    async fn add_shard(&self, url: &str, id: Option<ShardId>) -> Result<ShardId, CatalogError> {
        shard_url::check(url)?;
        change(self, AddShard { url, id }).await?
    }

    async fn set_shard_url(&self, id: ShardId, url: &str, from_version: u64) -> Result<(), CatalogError> {
        shard_url::check(url)?;
        change(self, SetShardUrl { id, url, from_version }).await?
    }

    async fn set_shard_state(
        &self,
        id: ShardId,
        state: CatalogShardState,
        from_version: u64,
    ) -> Result<(), CatalogError> {
        change(self, SetShardState { id, state, from_version }).await?
    }

    async fn remove_shard(&self, id: ShardId, from_version: u64) -> Result<(), CatalogError> {
        change(self, RemoveShard { id, from_version }).await?
    }

    async fn policy(&self, name: &TopicName) -> Result<PolicyRow, StoreError> {
        // Not behind the beats: whoever may pause a topic would hold them up.
        self.connections().changes.run(self, &ReadPolicy(name)).await
    }

    async fn put_policy(&self, wish: &PolicyWish) -> Result<PolicyOutcome, StoreError> {
        change(self, PutPolicy(wish)).await
    }

    async fn settings(&self, name: &TopicName) -> Result<SettingsRow, StoreError> {
        self.connections().changes.run(self, &ReadSettings(name)).await
    }

    async fn put_settings(&self, wish: &SettingsWish) -> Result<PolicyOutcome, StoreError> {
        change(self, PutSettings(wish)).await
    }

    async fn all_settings(&self, namespace: Option<&Namespace>) -> Result<SettingsSnapshot, StoreError> {
        self.connections().changes.run(self, &ReadAllSettings(namespace)).await
    }

    async fn put_all_settings(&self, document: &SettingsDocument) -> Result<PolicyOutcome, StoreError> {
        change(self, PutAllSettings(document)).await
    }

    async fn remove_policies(&self, removal: &PolicyRemoval) -> Result<Option<u64>, StoreError> {
        change(self, RemovePolicies(removal)).await
    }

    async fn add_audit(&self, record: &AuditRecord) -> Result<(), StoreError> {
        self.connections().records.run(self, &AddAudit(record)).await
    }

    async fn end_audit(&self, id: AuditId, end: &AuditEnd) -> Result<bool, StoreError> {
        self.connections().records.run(self, &EndAudit { id, end }).await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Vec<AuditRecord>, StoreError> {
        self.connections().records.run(self, &ReadAudit(query)).await
    }

    async fn sweep_audit(&self, before: Timestamp, most: u32) -> Result<u64, StoreError> {
        self.connections().records.run(self, &Transaction(SweepAudit { before, most })).await
    }

    async fn tokens(&self, known: u64) -> Result<Tokens, StoreError> {
        self.connections().records.run(self, &ReadTokens(known)).await
    }

    async fn token_page(&self, from: &str, limit: u32) -> Result<Vec<TokenRow>, StoreError> {
        self.connections().records.run(self, &ReadTokenPage { from, limit }).await
    }

    async fn add_token(&self, token: &NewToken) -> Result<TokenAddOutcome, StoreError> {
        change(self, AddToken(token)).await
    }

    async fn change_token(&self, id: &str, change: &TokenChange) -> Result<TokenChangeOutcome, StoreError> {
        self::change(self, ChangeToken { id, change }).await
    }

    async fn note_token_use(&self, id: &str, hour: Timestamp) -> Result<(), StoreError> {
        self.connections().records.run(self, &NoteUse { id, hour }).await
    }

    async fn session(&self, id: &[u8; 32]) -> Result<Option<SessionRow>, StoreError> {
        self.connections().sessions.run(self, &ReadSession(id)).await
    }

    async fn add_session(&self, session: &NewSession) -> Result<(), StoreError> {
        self.connections().sessions.run(self, &Transaction(AddSession(session))).await
    }

    async fn note_session_use(&self, id: &[u8; 32], now: Timestamp) -> Result<(), StoreError> {
        self.connections().sessions.run(self, &NoteSessionUse { id, now }).await
    }

    async fn remove_session(&self, id: &[u8; 32]) -> Result<(), StoreError> {
        self.connections().sessions.run(self, &RemoveSession(id)).await
    }
}
