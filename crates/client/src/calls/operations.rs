//! StartOperation and its like: changes of many items of a topic.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::Timestamp;

use super::operation_update::OperationUpdate;
use crate::{
    client::Client,
    durations::{from_proto, time_from_proto, to_proto},
    error::Error,
};

/// The longest that one call waits for a change of an operation.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// Removes items that wait, and leased ones if it is asked to.
    Purge,
    /// Dead letters become items again.
    Redrive,
    /// Deletes dead letters.
    DeleteDead,
    /// Releases leases.
    ResetLeases,
    /// Removes items wherever they are: ready, scheduled, leased or dead.
    Cancel,
    /// Gives items that wait other values.
    Update,
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationState {
    /// It waits for its turn.
    Pending,
    /// It runs.
    Running,
    /// It was cancelled, and some shard has not heard of it.
    Cancelling,
    /// All shards have done their parts.
    Succeeded,
    /// It was cancelled.
    Cancelled,
    /// It has ended, and in some shard before all was done.
    Failed,
    /// Not known to this program.
    Unknown,
}

impl OperationState {
    /// Nothing more is done.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Cancelled | Self::Failed)
    }
}

/// Which items of a topic are to be changed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationQuery {
    /// What is done.
    pub kind: OperationKind,
    /// The topic.
    pub topic: String,
    /// Terms joined by AND, as `age > 1h AND attempt >= 3`. Empty: all items.
    pub filter: String,
    /// Purges leased items too.
    pub leased: bool,
    /// Where dead letters return to. Empty: to their own topic.
    pub to_topic: String,
    /// So long after their return dead letters expire. `None`: never.
    pub ttl: Option<Duration>,
    /// What items get, of an update.
    pub update: Option<OperationUpdate>,
    /// Dead letters that were redriven so often already are skipped. `None`: none is for that.
    pub max_redrives: Option<u32>,
    /// At most so many items. 0: all.
    pub limit: u64,
    /// If more match, nothing is done.
    pub expect_at_most: Option<u64>,
    /// At most so many items a second. 0: as the server has it.
    pub rate: u32,
    /// Only counts.
    pub dry_run: bool,
    /// Why; kept with the operation.
    pub reason: String,
}

impl OperationQuery {
    /// All items of a topic.
    pub fn new(kind: OperationKind, topic: impl Into<String>) -> Self {
        Self {
            kind,
            topic: topic.into(),
            filter: String::new(),
            leased: false,
            to_topic: String::new(),
            ttl: None,
            update: None,
            max_redrives: None,
            limit: 0,
            expect_at_most: None,
            rate: 0,
            dry_run: false,
            reason: String::new(),
        }
    }
}

/// What an operation has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationCounts {
    /// Items that were looked at.
    pub scanned: u64,
    /// Those of them that passed the filter.
    pub matched: u64,
    /// Those of them that were changed.
    pub changed: u64,
    /// Those that did not fit any more.
    pub skipped: u64,
    /// Those that could not be changed.
    pub failed: u64,
}

/// A shard's part of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationShard {
    /// The shard.
    pub shard: u32,
    /// What it has counted.
    pub counts: OperationCounts,
    /// It has begun.
    pub begun: bool,
    /// It has done its part.
    pub ended: bool,
    /// It could not be asked now.
    pub silent: bool,
    /// Why its part does not go on, or ended before all was done.
    pub error: Option<Error>,
}

/// A change of many items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its id. A dry run has none.
    pub id: String,
    /// The namespace.
    pub namespace: String,
    /// What it does. `None`: not known to this program.
    pub kind: Option<OperationKind>,
    /// The topic.
    pub topic: String,
    /// Which items.
    pub filter: String,
    /// Leased items are purged too.
    pub leased: bool,
    /// Where dead letters return to.
    pub to_topic: String,
    /// So long after their return they expire.
    pub ttl: Option<Duration>,
    /// What items get, of an update.
    pub update: Option<OperationUpdate>,
    /// At most so many items a second.
    pub rate: u32,
    /// Who began it.
    pub started_by: String,
    /// Why.
    pub reason: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How far it is.
    pub state: OperationState,
    /// The sums over its shards.
    pub counts: OperationCounts,
    /// Its shards. A list leaves them out.
    pub shards: Vec<OperationShard>,
    /// Changes with each change of it.
    pub version: u64,
    /// Dead letters that were redriven so often are skipped.
    pub max_redrives: Option<u32>,
    /// Why it failed, or does not go on, in the first of the shards of which that is so.
    pub error: Option<Error>,
    /// About how many items it looks at.
    pub estimated_total: u64,
    /// When it will have ended, about.
    pub estimated_end: Option<Timestamp>,
}

/// An operation that was begun, or a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedOperation {
    /// The operation.
    pub operation: Operation,
    /// A dry run has counted all.
    pub exact: bool,
    /// Some items that a dry run has counted.
    pub samples: Vec<String>,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
}

/// A page of operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationList {
    /// The latest first.
    pub operations: Vec<Operation>,
    /// The token of the next page; `None` after the last one.
    pub next: Option<String>,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
}

impl Client {
    /// Begins an operation, or counts what it would change. A retry begins no second one.
    pub async fn start_operation(&self, query: OperationQuery) -> Result<StartedOperation, Error> {
        let kind = match query.kind {
            OperationKind::Purge => v1::OperationKind::Purge,
            OperationKind::Redrive => v1::OperationKind::Redrive,
            OperationKind::DeleteDead => v1::OperationKind::DeleteDead,
            OperationKind::ResetLeases => v1::OperationKind::ResetLeases,
            OperationKind::Cancel => v1::OperationKind::Cancel,
            OperationKind::Update => v1::OperationKind::Update,
        };
        let request = v1::StartOperationRequest {
            namespace: self.config.namespace.clone(),
            kind: kind.into(),
            topic: query.topic,
            filter: query.filter,
            leased: query.leased,
            to_topic: query.to_topic,
            ttl: query.ttl.map(to_proto),
            update: query.update.map(v1::OperationUpdate::from),
            max_redrives: query.max_redrives,
            limit: query.limit,
            expect_at_most: query.expect_at_most,
            rate_per_second: query.rate,
            dry_run: query.dry_run,
            reason: query.reason,
            request_id: self.rng.request_id(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.start_operation(request).await }
            })
            .await?;
        Ok(StartedOperation {
            operation: operation(answer.operation.unwrap_or_default()),
            exact: answer.exact,
            samples: answer.sample_item_ids,
            incomplete_shards: answer.incomplete_shards,
        })
    }

    /// An operation. `known`: a version for whose change the call waits for a few seconds.
    pub async fn operation(&self, id: &str, known: Option<u64>) -> Result<Operation, Error> {
        let request = v1::GetOperationRequest {
            namespace: self.config.namespace.clone(),
            operation_id: id.to_owned(),
            wait: known.map(|_| to_proto(WAIT_MAX)),
            version: known.unwrap_or_default(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.get_operation(request).await }
            })
            .await?;
        Ok(operation(answer.operation.unwrap_or_default()))
    }

    /// One page of the operations: so many at most.
    pub async fn operations(&self, page_size: u32, page_token: String) -> Result<OperationList, Error> {
        let namespace = self.config.namespace.clone();
        let request = v1::ListOperationsRequest { namespace, page_size, page_token };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.list_operations(request).await }
            })
            .await?;
        Ok(OperationList {
            operations: answer.operations.into_iter().map(operation).collect(),
            next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
            incomplete_shards: answer.incomplete_shards,
        })
    }

    /// Ends an operation. What it has done stays done.
    pub async fn cancel_operation(&self, id: &str) -> Result<Operation, Error> {
        let (namespace, operation_id) = (self.config.namespace.clone(), id.to_owned());
        let request =
            v1::CancelOperationRequest { namespace, operation_id, request_id: self.rng.request_id() };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.cancel_operation(request).await }
            })
            .await?;
        Ok(operation(answer.operation.unwrap_or_default()))
    }

    /// Changes the rate of an operation: at most so many items a second.
    pub async fn set_operation_rate(&self, id: &str, rate: u32) -> Result<Operation, Error> {
        let (namespace, operation_id) = (self.config.namespace.clone(), id.to_owned());
        let request_id = self.rng.request_id();
        let request =
            v1::SetOperationRateRequest { namespace, operation_id, rate_per_second: rate, request_id };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.set_operation_rate(request).await }
            })
            .await?;
        Ok(operation(answer.operation.unwrap_or_default()))
    }
}

fn counts(figures: Option<v1::OperationFigures>) -> OperationCounts {
    let v1::OperationFigures { scanned, matched, changed, skipped, failed } = figures.unwrap_or_default();
    OperationCounts { scanned, matched, changed, skipped, failed }
}

fn operation(it: v1::Operation) -> Operation {
    let kind = match it.kind() {
        v1::OperationKind::Purge => Some(OperationKind::Purge),
        v1::OperationKind::Redrive => Some(OperationKind::Redrive),
        v1::OperationKind::DeleteDead => Some(OperationKind::DeleteDead),
        v1::OperationKind::ResetLeases => Some(OperationKind::ResetLeases),
        v1::OperationKind::Cancel => Some(OperationKind::Cancel),
        v1::OperationKind::Update => Some(OperationKind::Update),
        v1::OperationKind::Unspecified => None,
    };
    let state = match it.state() {
        v1::OperationState::Pending => OperationState::Pending,
        v1::OperationState::Running => OperationState::Running,
        v1::OperationState::Cancelling => OperationState::Cancelling,
        v1::OperationState::Succeeded => OperationState::Succeeded,
        v1::OperationState::Cancelled => OperationState::Cancelled,
        v1::OperationState::Failed => OperationState::Failed,
        v1::OperationState::Unspecified => OperationState::Unknown,
    };
    let shard = |it: v1::OperationShard| OperationShard {
        shard: it.shard,
        counts: counts(it.figures),
        begun: it.begun,
        ended: it.ended,
        silent: it.silent,
        error: it.error.as_ref().map(Error::of_member),
    };
    Operation {
        id: it.id,
        namespace: it.namespace,
        kind,
        topic: it.topic,
        filter: it.filter,
        leased: it.leased,
        to_topic: it.to_topic,
        ttl: it.ttl.map(from_proto),
        update: it.update.map(OperationUpdate::from),
        rate: it.rate_per_second,
        started_by: it.started_by,
        reason: it.reason,
        started_at: it.started_at.map(time_from_proto),
        ended_at: it.ended_at.map(time_from_proto),
        state,
        counts: counts(it.figures),
        shards: it.shards.into_iter().map(shard).collect(),
        version: it.version,
        max_redrives: it.max_redrives,
        error: it.error.as_ref().map(Error::of_member),
        estimated_total: it.estimated_total,
        estimated_end: it.estimated_end.map(time_from_proto),
    }
}
