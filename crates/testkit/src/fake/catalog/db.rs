//! The database of a fake catalog: its rows and faults, what it went back from, and a log of its changes.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_store::{CatalogChanges, CatalogNode, ErrorClass, Home, StoreError, Versions};
use forebay_types::{NodeName, ShardId};

use super::{bug::CatalogBug, faults::CatalogFaults, tables::CatalogTables};
use crate::fake::{Dice, Journal, Moment};

/// At most this many earlier states are kept, to go back to.
const KEPT_MAX: usize = 64;

/// A change of the assignment, for the checks after a run.
#[derive(Debug, Clone)]
pub struct AssignmentRecord {
    /// When it took effect.
    pub done: Moment,
    /// The process that wrote it. 0: an operator.
    pub process: usize,
    /// The homes that changed.
    pub changes: Vec<Change>,
    /// The nodes at that moment.
    pub nodes: BTreeMap<NodeName, CatalogNode>,
}

/// A change of a shard's home.
#[derive(Debug, Clone)]
pub struct Change {
    /// The shard.
    pub shard: ShardId,
    /// The home before.
    pub from: Option<Home>,
    /// The home from then on.
    pub to: Option<Home>,
}

/// Everything about a fake catalog.
#[derive(Debug)]
pub struct CatalogState {
    /// The rows. `None`: there is no schema yet.
    pub(super) tables: Option<CatalogTables>,
    /// How it behaves now.
    pub faults: CatalogFaults,
    /// Its planted bug, to test the checker.
    pub bug: Option<CatalogBug>,
    /// The newest schema version that a program must know to use it. This program knows 1.
    pub oldest_program: u32,
    /// Every change of the assignment.
    pub assigned: Vec<AssignmentRecord>,
    /// The shards whose homes are about to change: a node's call is on its way.
    pub on_their_way: Vec<ShardId>,
    /// Its randomness.
    pub(super) dice: Dice,
    /// The rows before each of the last changes of a version, oldest first.
    kept: VecDeque<CatalogTables>,
    /// The newest rows, while it has gone back.
    ahead: Option<CatalogTables>,
}

impl CatalogState {
    /// Everything that is stored. `None`: there is no schema yet.
    pub fn view(&self) -> Option<CatalogChanges> {
        self.tables.as_ref().map(|tables| tables.read(Versions::default()))
    }

    /// The same as it was before it went back, if it has.
    pub fn newest(&self) -> Option<CatalogChanges> {
        let tables = self.ahead.as_ref().or(self.tables.as_ref())?;
        Some(tables.read(Versions::default()))
    }

    /// Changes rows, keeps those of before, and notes what became of homes. While it has gone back, it takes
    /// beats alone: two lines of changes with the same versions could not be told apart later.
    pub(super) fn change<T>(
        &mut self,
        journal: &Journal,
        process: usize,
        what: &str,
        change: impl FnOnce(&mut CatalogTables) -> T,
    ) -> Result<T, StoreError> {
        let tables = self.tables.as_mut().ok_or_else(no_schema)?;
        let before = tables.clone();
        let answer = change(tables);
        if tables.versions == before.versions {
            return Ok(answer);
        }
        if self.ahead.is_some() {
            *tables = before;
            return Err(StoreError::new(ErrorClass::Unavailable, "the catalog has gone back"));
        }
        let Versions { shards, nodes, assignment, policies } = tables.versions;
        let done = journal.note(format_args!(
            "catalog: {what} by process {process}: versions {shards}, {nodes}, {assignment}, {policies}"
        ));
        let changes = changes(&before.homes, &tables.homes);
        for Change { shard, from, to } in &changes {
            journal.note(format_args!("catalog: shard {shard} goes from {} to {}", name(from), name(to)));
        }
        if !changes.is_empty() {
            self.assigned.push(AssignmentRecord { done, process, changes, nodes: tables.nodes.clone() });
        }
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(before);
        Ok(answer)
    }

    /// Shows the rows of `steps` changes ago, as after a restore. Returns whether there were so many.
    pub fn go_back(&mut self, steps: usize) -> bool {
        let earlier = self.kept.len().checked_sub(steps).and_then(|at| self.kept.get(at).cloned());
        let (None, Some(earlier), Some(now)) = (&self.ahead, earlier, &mut self.tables) else { return false };
        self.ahead = Some(std::mem::replace(now, earlier));
        true
    }

    /// Shows the newest rows again. What was changed meanwhile is gone.
    pub fn come_forward(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            self.tables = Some(ahead);
        }
    }

    /// Whether it has gone back.
    pub fn is_behind(&self) -> bool {
        self.ahead.is_some()
    }
}

pub(super) fn no_schema() -> StoreError {
    let message = "the catalog has no schema: run `forebay migrate --catalog`";
    StoreError::new(ErrorClass::Schema, message)
}

fn name(home: &Option<Home>) -> &str {
    home.as_ref().map_or("nobody", |home| home.node.as_str())
}

fn changes(before: &BTreeMap<ShardId, Home>, after: &BTreeMap<ShardId, Home>) -> Vec<Change> {
    let ids: std::collections::BTreeSet<ShardId> = before.keys().chain(after.keys()).copied().collect();
    let changes = ids.into_iter().map(|id| Change {
        shard: id,
        from: before.get(&id).cloned(),
        to: after.get(&id).cloned(),
    });
    changes.filter(|change| change.from != change.to).collect()
}

/// A handle on a fake catalog's database. Clones reach the same one.
#[derive(Debug, Clone)]
pub struct CatalogDb {
    /// Records every event.
    pub journal: Arc<Journal>,
    /// The database itself.
    state: Arc<Mutex<CatalogState>>,
}

impl CatalogDb {
    /// An empty database without a schema, healthy and without delay.
    pub fn new(journal: Arc<Journal>, dice: Dice) -> Self {
        let state = CatalogState {
            tables: None,
            faults: CatalogFaults::instant(),
            bug: None,
            oldest_program: 1,
            assigned: Vec::new(),
            on_their_way: Vec::new(),
            dice,
            kept: VecDeque::new(),
            ahead: None,
        };
        Self { journal, state: Arc::new(Mutex::new(state)) }
    }

    /// An operator pins a shard. That takes no time.
    pub fn pin(&self, shard: ShardId, node: NodeName) {
        let state = &mut *self.lock();
        let home = BTreeMap::from([(shard, Some(Home { node, pinned: true }))]);
        let pin = |tables: &mut CatalogTables| tables.assign(tables.versions.assignment, &home);
        // One that has gone back takes no pin.
        let _ = state.change(&self.journal, 0, "pin", pin);
    }

    /// Locks the database. The guard must not be held over an await.
    pub fn lock(&self) -> MutexGuard<'_, CatalogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
