//! One process's access to a fake shard.

use std::sync::Arc;

use async_trait::async_trait;
use forebay_store::{
    Claim, ErrorClass, MigrateError, Observation, ProbeOutcome, ReadAhead, Settings, Shard, ShardConnections,
    ShardIdentity, StoreError,
};
use forebay_types::{ClusterId, ShardId};

use super::{
    db::{Author, Db, State},
    heartbeat::FakeHeartbeat,
    owners::{AttemptRecord, TakeOverRecord},
    process::Process,
    reader::FakeReader,
    session::Session,
    writer::FakeWriter,
};

/// A fake shard, as one process reaches it.
#[derive(Debug, Clone)]
pub struct FakeShard {
    /// The shard.
    db: Db,
    /// The process.
    process: Process,
    /// The number that it is configured with.
    id: ShardId,
}

impl FakeShard {
    /// The shard `db`, as `process` reaches it.
    pub fn new(db: Db, process: Process) -> Self {
        let id = db.lock().id;
        Self { db, process, id }
    }

    /// The same, configured with this number.
    pub fn configured_as(self, id: ShardId) -> Self {
        Self { id, ..self }
    }

    /// Fails if it is configured with another number than its own, or is for newer programs.
    fn check_identity(&self) -> Result<ClusterId, StoreError> {
        let state = self.db.lock();
        if state.is_catalog {
            return Err(StoreError::new(ErrorClass::Schema, "the schema is that of a catalog, not a shard"));
        }
        let missing = || StoreError::new(ErrorClass::Schema, "the schema is missing: run `forebay migrate`");
        let cluster = state.cluster.ok_or_else(missing)?;
        if state.oldest_program > 1 {
            let message = format!("the schema is for programs that know version {}", state.oldest_program);
            return Err(StoreError::new(ErrorClass::Schema, message));
        }
        if state.id == self.id {
            return Ok(cluster);
        }
        let [found, ours] = [state.id, self.id].map(|shard| ShardIdentity { shard, cluster });
        Err(StoreError::new(ErrorClass::Schema, format!("the schema is {found}; it is configured as {ours}")))
    }
}

#[async_trait]
impl Shard for FakeShard {
    fn server(&self) -> String {
        self.db.lock().server.clone()
    }

    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError> {
        let state = self.db.lock();
        Ok(state.cluster.map(|cluster| ShardIdentity { shard: state.id, cluster }))
    }

    async fn migrate(&self, cluster: ClusterId) -> Result<Vec<u32>, MigrateError> {
        self.db.operate(&self.process, "migration", |faults| faults.read_fails).await?;
        let is_new = {
            let state = &mut *self.db.lock();
            let is_new = state.cluster.is_none() && !state.is_catalog;
            if is_new {
                state.cluster = Some(cluster);
            }
            is_new
        };
        let found = self.check_identity()?;
        if found != cluster {
            let [found, ours] = [found, cluster].map(|cluster| ShardIdentity { shard: self.id, cluster });
            let message = format!("the schema is {found}; it is configured as {ours}");
            return Err(StoreError::new(ErrorClass::Schema, message).into());
        }
        Ok(if is_new { vec![1] } else { Vec::new() })
    }

    async fn check(&self) -> Result<Settings, StoreError> {
        self.db.operate(&self.process, "check", |faults| faults.read_fails).await?;
        let cluster = self.check_identity()?;
        let state = self.db.lock();
        let (batch_bytes, not_durable) = (state.batch_bytes, state.not_durable.clone());
        let server = "memory".to_owned();
        Ok(Settings { server, batch_bytes, not_durable, cluster, ..Settings::default() })
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        self.db.operate(&self.process, "observation", |faults| faults.read_fails).await?;
        let state = self.db.lock();
        if state.cluster.is_none() {
            return Err(StoreError::new(ErrorClass::Schema, "the schema is missing: run `forebay migrate`"));
        }
        let tables = &state.tables;
        Ok(Observation {
            epoch: tables.fence.epoch,
            batch: tables.fence.batch,
            renewals: tables.renewals,
            incarnation: tables.fence.incarnation,
            address: tables.address.clone(),
            lease: tables.lease,
            successor: tables.successor.clone(),
            topology_history: tables.topology_history.clone(),
            orphaned: false,
        })
    }

    async fn probe(&self) -> Result<ProbeOutcome, StoreError> {
        self.db.operate(&self.process, "probe", |faults| faults.read_fails).await?;
        Ok(ProbeOutcome::Committed)
    }

    async fn read_ahead(&self) -> Result<ReadAhead, StoreError> {
        let rows = self.db.lock().tables.snapshot().topics;
        self.db.operate(&self.process, "read ahead", |faults| faults.read_fails).await?;
        self.db.answer(&self.process).await;
        // The load itself reads all of them again.
        Ok(ReadAhead::hints(rows))
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        let begun = self.db.journal.last();
        let tried = AttemptRecord { begun, process: self.process.number, epoch: seen.epoch };
        self.db.lock().tried.push(tried);
        self.db.operate(&self.process, "take-over", |faults| faults.take_over_fails).await?;
        let (fence, behind, connection) = {
            let state = &mut *self.db.lock();
            let moved = |state: &State| {
                let fence = state.tables.fence;
                (fence.epoch, fence.batch, state.tables.renewals) != (seen.epoch, seen.batch, seen.renewals)
            };
            if moved(state) {
                return Ok(None);
            }
            let in_flight = state.in_flight.is_some_and(|connection| state.lives(connection));
            let in_flight = in_flight || state.hanging.is_some();
            state.kill_all(&self.db.journal);
            // A COMMIT that hung may have taken effect now.
            if moved(state) {
                return Ok(None);
            }
            let fence = &mut state.tables.fence;
            fence.epoch += 1;
            fence.incarnation = claim.incarnation;
            let found = *fence;
            state.tables.raise_fence();
            let fence = state.tables.fence;
            let behind = (found != fence).then_some(found);
            state.tables.renewals += 1;
            let released = state.tables.address.is_empty();
            state.tables.address.clone_from(&claim.address);
            state.tables.successor.clear();
            state.tables.lease = claim.lease;
            state.flush();
            state.coverage.take_over_in_flight += u64::from(in_flight);
            let done = self.db.note(&self.process, format_args!("take-over, epoch {}", fence.epoch));
            let (process, epoch) = (self.process.number, fence.epoch);
            let incarnation = claim.incarnation;
            state.owners.push(TakeOverRecord { done, process, epoch, incarnation, released });
            (fence, behind, state.connect())
        };
        let (db, process) = (self.db.clone(), self.process.clone());
        let author = Author { process: process.number, epoch: fence.epoch, incarnation: fence.incarnation };
        self.db.answer(&self.process).await;
        let session = Session { db: db.clone(), process: process.clone(), author, connection };
        Ok(Some(ShardConnections {
            fence,
            behind,
            writer: Box::new(FakeWriter { session }),
            heartbeat: Box::new(FakeHeartbeat { db: db.clone(), process: process.clone(), author }),
            reader: Arc::new(FakeReader { db, process }),
        }))
    }
}
