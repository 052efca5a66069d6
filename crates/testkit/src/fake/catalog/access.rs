//! One process's access to a fake catalog.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use forebay_store::{
    AuditEnd, AuditId, AuditQuery, AuditRecord, Beat, Catalog, CatalogChanges, CatalogError, CatalogNode,
    CatalogShardState, ErrorClass, Home, JoinOutcome, MigrateError, NewSession, NewToken, NodeReport,
    PolicyOutcome, PolicyRemoval, PolicyWish, SessionRow, SettingsDocument, SettingsSnapshot, SettingsWish,
    Sighting, StoreError, TokenAddOutcome, TokenChange, TokenChangeOutcome, TokenRow, Tokens, Versions,
    check_shard_url,
};
use forebay_types::{
    ClusterId, Incarnation, Namespace, NodeName, PolicyRow, SettingsRow, ShardId, Timestamp, TopicName,
};
use tokio::sync::oneshot;

use super::{
    bug::CatalogBug,
    db::{CatalogDb, CatalogState, no_schema},
    faults::Outage,
    records::Records,
    tables::CatalogTables,
};
use crate::fake::{Life, Process};

/// The program's own version of the schema.
const KNOWN: u32 = 13;
/// A call to a catalog that hangs fails after so long, as a connection does.
const HANGS_FOR: Duration = Duration::from_secs(10);

/// A fake catalog, as one process reaches it.
#[derive(Debug, Clone)]
pub struct FakeCatalog {
    /// The catalog.
    db: CatalogDb,
    /// The process. Its number is 0 for an operator.
    process: Process,
}

fn lost(what: &str) -> StoreError {
    let message = format!("it is not known whether this was done: {what}: connection lost");
    StoreError::new(ErrorClass::Disconnected, message)
}

impl FakeCatalog {
    /// The catalog `db`, as `process` reaches it.
    pub fn new(db: CatalogDb, process: Process) -> Self {
        Self { db, process }
    }

    /// Makes a call. Once it was sent, it takes effect, whatever becomes of the process.
    async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        call: impl FnOnce(&mut CatalogState) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (there, back, lost_before, lost_after) = {
            let state = &mut *self.db.lock();
            let (faults, dice) = (state.faults.clone(), &mut state.dice);
            let (there, back) = (faults.pause(dice), dice.millis(faults.reply_ms));
            (there, back, dice.chance(faults.lost_before), dice.chance(faults.lost_after))
        };
        let (answer, answered) = oneshot::channel();
        let (db, process) = (self.db.clone(), self.process.clone());
        tokio::spawn(async move {
            if !there.is_zero() {
                tokio::time::sleep(there).await;
            }
            let outage = {
                let faults = &db.lock().faults;
                let cut_off = process.life() == Life::CutOff || faults.cut_off == Some(process.number);
                if cut_off { Some(Outage::Hangs) } else { faults.outage }
            };
            let result = match outage {
                Some(Outage::Refuses) => Err(StoreError::new(ErrorClass::Unavailable, "connection refused")),
                Some(Outage::Hangs) => {
                    tokio::time::sleep(HANGS_FOR).await;
                    Err(StoreError::new(ErrorClass::Disconnected, "no answer"))
                }
                None if lost_before => Err(lost(what)),
                None => call(&mut db.lock()),
            };
            // The process may be gone.
            let _ = answer.send(result);
        });
        let result = answered.await.unwrap_or_else(|_| Err(lost(what)));
        if !back.is_zero() {
            tokio::time::sleep(back).await;
        }
        if lost_after && result.is_ok() { Err(lost(what)) } else { result }
    }

    async fn change<T: Send + 'static>(
        &self,
        what: &'static str,
        change: impl FnOnce(&mut CatalogTables) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (journal, number) = (self.db.journal.clone(), self.process.number);
        let call = move |state: &mut CatalogState| state.change(&journal, number, what, change);
        self.call(what, call).await
    }

    /// Reads or changes what no version of a cluster counts.
    async fn records<T: Send + 'static>(
        &self,
        what: &'static str,
        call: impl FnOnce(&mut Records) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let call = move |state: &mut CatalogState| {
            state.tables.as_mut().map(|tables| call(&mut tables.records)).ok_or_else(no_schema)
        };
        self.call(what, call).await
    }
}

#[async_trait]
impl Catalog for FakeCatalog {
    async fn cluster(&self) -> Result<Option<ClusterId>, StoreError> {
        self.call("cluster", |state| Ok(state.tables.as_ref().map(|tables| tables.cluster))).await
    }

    async fn migrate(&self, cluster_if_new: ClusterId) -> Result<Vec<u32>, MigrateError> {
        let migrate = move |state: &mut CatalogState| {
            if state.oldest_program > KNOWN {
                return Ok(Err(state.oldest_program));
            }
            let is_new = state.tables.is_none();
            if is_new {
                state.tables = Some(CatalogTables::new(cluster_if_new));
            }
            Ok(Ok(if is_new { (1..=KNOWN).collect() } else { Vec::new() }))
        };
        let done = self.call("migration", migrate).await?;
        done.map_err(|oldest| MigrateError::TooNew { found: oldest, oldest, known: KNOWN })
    }

    async fn check(&self) -> Result<(), StoreError> {
        let check = |state: &mut CatalogState| match state.oldest_program {
            _ if state.tables.is_none() => Err(no_schema()),
            oldest if oldest > KNOWN => {
                let message = format!("the schema is for programs that know version {oldest}");
                Err(StoreError::new(ErrorClass::Schema, message))
            }
            _ => Ok(()),
        };
        self.call("check", check).await
    }

    async fn read(&self, known: Versions) -> Result<CatalogChanges, StoreError> {
        let read = move |state: &mut CatalogState| {
            state.tables.as_ref().map(|tables| tables.read(known)).ok_or_else(no_schema)
        };
        self.call("read", read).await
    }

    async fn join(&self, node: &CatalogNode, expected: Option<Sighting>) -> Result<JoinOutcome, StoreError> {
        let node = node.clone();
        self.change("join", move |tables| tables.join(&node, expected)).await
    }

    async fn beat(
        &self,
        name: &NodeName,
        incarnation: Incarnation,
        report: &NodeReport,
    ) -> Result<Beat, StoreError> {
        let (name, report) = (name.clone(), report.clone());
        self.change("beat", move |tables| tables.beat(&name, incarnation, report)).await
    }

    async fn leave(&self, name: &NodeName, incarnation: Incarnation) -> Result<bool, StoreError> {
        let name = name.clone();
        self.change("leave", move |tables| tables.leave(&name, incarnation)).await
    }

    async fn set_draining(&self, name: &NodeName, draining: bool) -> Result<bool, StoreError> {
        let name = name.clone();
        self.change("drain", move |tables| tables.set_draining(&name, draining)).await
    }

    async fn assign(
        &self,
        from_version: u64,
        changes: &BTreeMap<ShardId, Option<Home>>,
    ) -> Result<bool, StoreError> {
        let changes = changes.clone();
        let compares = self.db.lock().bug != Some(CatalogBug::AssignsWithoutCompare);
        self.db.lock().on_their_way = changes.keys().copied().collect();
        let (journal, number) = (self.db.journal.clone(), self.process.number);
        let assign = move |state: &mut CatalogState| {
            state.on_their_way.clear();
            let assign = |tables: &mut CatalogTables| {
                let from = if compares { from_version } else { tables.versions.assignment };
                tables.assign(from, &changes)
            };
            state.change(&journal, number, "assign", assign)
        };
        self.call("assign", assign).await
    }

    async fn add_shard(&self, url: &str, id: Option<ShardId>) -> Result<ShardId, CatalogError> {
        check_shard_url(url)?;
        let url = url.to_owned();
        self.change("new shard", move |tables| tables.add_shard(&url, id)).await?
    }

    async fn set_shard_url(&self, id: ShardId, url: &str, from_version: u64) -> Result<(), CatalogError> {
        check_shard_url(url)?;
        let url = url.to_owned();
        self.change("address of a shard", move |it| it.set_shard_url(id, &url, from_version)).await?
    }

    async fn set_shard_state(
        &self,
        id: ShardId,
        state: CatalogShardState,
        from_version: u64,
    ) -> Result<(), CatalogError> {
        self.change("state of a shard", move |it| it.set_shard_state(id, state, from_version)).await?
    }

    async fn remove_shard(&self, id: ShardId, from_version: u64) -> Result<(), CatalogError> {
        self.change("removal", move |it| it.remove_shard(id, from_version)).await?
    }

    async fn policy(&self, name: &TopicName) -> Result<PolicyRow, StoreError> {
        let name = name.clone();
        let read = move |state: &mut CatalogState| {
            state.tables.as_ref().map(|tables| tables.policy(&name)).ok_or_else(no_schema)
        };
        self.call("policy", read).await
    }

    async fn put_policy(&self, wish: &PolicyWish) -> Result<PolicyOutcome, StoreError> {
        let wish = wish.clone();
        self.change("policy", move |tables| tables.put_policy(&wish)).await
    }

    async fn settings(&self, name: &TopicName) -> Result<SettingsRow, StoreError> {
        let name = name.clone();
        let read = move |state: &mut CatalogState| {
            state.tables.as_ref().map(|tables| tables.settings(&name)).ok_or_else(no_schema)
        };
        self.call("settings", read).await
    }

    async fn put_settings(&self, wish: &SettingsWish) -> Result<PolicyOutcome, StoreError> {
        let wish = wish.clone();
        self.change("settings", move |tables| tables.put_settings(&wish)).await
    }

    async fn all_settings(&self, namespace: Option<&Namespace>) -> Result<SettingsSnapshot, StoreError> {
        let namespace = namespace.cloned();
        let all = move |tables: &super::tables::CatalogTables| tables.all_settings(namespace.as_ref());
        let read = move |state: &mut CatalogState| state.tables.as_ref().map(&all).ok_or_else(no_schema);
        self.call("all settings", read).await
    }

    async fn put_all_settings(&self, document: &SettingsDocument) -> Result<PolicyOutcome, StoreError> {
        let document = document.clone();
        self.change("all settings", move |tables| tables.put_all_settings(&document)).await
    }

    async fn remove_policies(&self, removal: &PolicyRemoval) -> Result<Option<u64>, StoreError> {
        let removal = removal.clone();
        self.change("removal of policies", move |tables| tables.remove_policies(&removal)).await
    }

    async fn add_audit(&self, record: &AuditRecord) -> Result<(), StoreError> {
        let record = record.clone();
        self.records("audit", move |it| drop(it.audit.insert(record.id, record))).await
    }

    async fn end_audit(&self, id: AuditId, end: &AuditEnd) -> Result<bool, StoreError> {
        let end = end.clone();
        self.records("audit", move |it| it.end_audit(id, end)).await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Vec<AuditRecord>, StoreError> {
        let query = query.clone();
        self.records("audit", move |it| it.read_audit(&query)).await
    }

    async fn sweep_audit(&self, before: Timestamp, most: u32) -> Result<u64, StoreError> {
        self.records("audit", move |it| it.sweep_audit(before, most)).await
    }

    async fn tokens(&self, known: u64) -> Result<Tokens, StoreError> {
        self.records("tokens", move |it| it.read_tokens(known)).await
    }

    async fn token_page(&self, from: &str, limit: u32) -> Result<Vec<TokenRow>, StoreError> {
        let from = from.to_owned();
        let read = move |it: &mut Records| {
            it.tokens.range(from..).take(limit as usize).map(|(_, row)| row.clone()).collect()
        };
        self.records("tokens", read).await
    }

    async fn add_token(&self, token: &NewToken) -> Result<TokenAddOutcome, StoreError> {
        let token = token.clone();
        self.records("token", move |it| it.add_token(token)).await
    }

    async fn change_token(&self, id: &str, change: &TokenChange) -> Result<TokenChangeOutcome, StoreError> {
        let (id, change) = (id.to_owned(), change.clone());
        self.records("token", move |it| it.change_token(&id, &change)).await
    }

    async fn note_token_use(&self, id: &str, hour: Timestamp) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.records("token", move |it| it.note_token_use(&id, hour)).await
    }

    async fn session(&self, id: &[u8; 32]) -> Result<Option<SessionRow>, StoreError> {
        let id = *id;
        self.records("session", move |it| it.sessions.get(&id).cloned()).await
    }

    async fn add_session(&self, session: &NewSession) -> Result<(), StoreError> {
        let session = session.clone();
        self.records("session", move |it| it.add_session(session)).await
    }

    async fn note_session_use(&self, id: &[u8; 32], now: Timestamp) -> Result<(), StoreError> {
        let id = *id;
        self.records("session", move |it| it.note_session_use(&id, now)).await
    }

    async fn remove_session(&self, id: &[u8; 32]) -> Result<(), StoreError> {
        let id = *id;
        self.records("session", move |it| drop(it.sessions.remove(&id))).await
    }
}
