//! Nodes join, beat, drain and leave.

use async_trait::async_trait;
use forebay_types::{Incarnation, NodeName};

use super::super::{
    call::{Call, Change, End, Failure},
    columns,
    rows::{Beat, CatalogNode, JoinOutcome, NodeReport, Sighting},
    session::CatalogSession,
};
use crate::{
    error::StoreError,
    sql::{Session, Statement, Value},
};

fn next_version() -> Statement {
    Statement::new("UPDATE cluster SET nodes_version = nodes_version + 1 WHERE id = 1", vec![])
}

fn name_value(name: &NodeName) -> Value {
    name.as_str().into()
}

/// Adds a node, or replaces one that is as expected.
pub(in super::super) struct Join<'a> {
    /// The node.
    pub(in super::super) node: &'a CatalogNode,
    /// A process of that name that the caller calls dead.
    pub(in super::super) expected: Option<Sighting>,
}

impl Join<'_> {
    async fn found(&self, session: &mut dyn Session) -> Result<Option<Sighting>, StoreError> {
        let sql = "SELECT incarnation, beats FROM node WHERE name = ?";
        let rows = session.fetch(Statement::new(sql, vec![name_value(&self.node.name)])).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Sighting { incarnation: Incarnation(row.hash(0)?), beats: row.u64(1)? }))
    }

    fn insert(&self) -> Result<Statement, StoreError> {
        let sql = format!(
            "INSERT INTO node ({}, name, draining, beats) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
            columns::OF_PROCESS.join(", ")
        );
        let mut values = columns::of_process(self.node)?;
        values.extend([name_value(&self.node.name), i64::from(self.node.draining).into()]);
        Ok(Statement::new(sql, values))
    }

    /// Says when the process was started.
    fn start(&self) -> Statement {
        let at = self.node.started_at.map_or(Value::Null, Value::from);
        let values = vec![at, self.node.incarnation.0.as_slice().into(), name_value(&self.node.name)];
        Statement::new("UPDATE node SET started_at = ?, started_as = ? WHERE name = ?", values)
    }

    /// Replaces a process. If its counter has moved since, no row matches.
    fn replace(&self, seen: Sighting) -> Result<Statement, StoreError> {
        let columns = columns::OF_PROCESS.map(|column| format!("{column} = ?")).join(", ");
        let sql = format!(
            "UPDATE node SET {columns}, beats = beats + 1 WHERE name = ? AND incarnation = ? AND beats = ?"
        );
        let mut values = columns::of_process(self.node)?;
        values.extend([name_value(&self.node.name), seen.incarnation.0.as_slice().into(), seen.beats.into()]);
        Ok(Statement::new(sql, values))
    }
}

#[async_trait]
impl Change for Join<'_> {
    type Answer = JoinOutcome;
    // The second time the name is taken by ourselves.
    const REPEATABLE: bool = true;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<JoinOutcome>, StoreError> {
        session.execute(next_version()).await?;
        let Some(found) = self.found(session).await? else {
            session.execute(self.insert()?).await?;
            session.execute(self.start()).await?;
            return Ok(End::Commit(JoinOutcome::Yes));
        };
        let is_ours = found.incarnation == self.node.incarnation;
        if !is_ours && self.expected != Some(found) {
            return Ok(End::RollBack(JoinOutcome::NameTaken(found)));
        }
        if session.execute(self.replace(found)?).await? == 1 {
            session.execute(self.start()).await?;
            return Ok(End::Commit(JoinOutcome::Yes));
        }
        // It has sent a beat since it was read.
        let now = self.found(session).await?.unwrap_or(found);
        Ok(End::RollBack(JoinOutcome::NameTaken(now)))
    }
}

/// Counts a beat.
pub(in super::super) struct SendBeat<'a> {
    /// The node.
    pub(in super::super) name: &'a NodeName,
    /// The process.
    pub(in super::super) incarnation: Incarnation,
    /// Its report.
    pub(in super::super) report: &'a NodeReport,
}

#[async_trait]
impl Call for SendBeat<'_> {
    type Answer = Beat;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<Beat, Failure> {
        let [servers, unreachable] = columns::of_report(self.report)?;
        let statement = Statement::new(
            "/* forebay beat */ UPDATE node SET beats = beats + 1, servers = ?, unreachable = ? \
             WHERE name = ? AND incarnation = ?",
            vec![servers, unreachable, name_value(self.name), self.incarnation.0.as_slice().into()],
        );
        match session.execute_alone(statement).await? {
            0 => Ok(Beat::Replaced),
            _ => Ok(Beat::Ok),
        }
    }
}

/// Removes a node.
pub(in super::super) struct Leave<'a> {
    /// The node.
    pub(in super::super) name: &'a NodeName,
    /// The process.
    pub(in super::super) incarnation: Incarnation,
}

#[async_trait]
impl Change for Leave<'_> {
    type Answer = bool;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<bool>, StoreError> {
        session.execute(next_version()).await?;
        let sql = "DELETE FROM node WHERE name = ? AND incarnation = ?";
        let values = vec![name_value(self.name), self.incarnation.0.as_slice().into()];
        Ok(if_one(session.execute(Statement::new(sql, values)).await?))
    }
}

/// Says whether a node should own shards.
pub(in super::super) struct SetDraining<'a> {
    /// The node.
    pub(in super::super) name: &'a NodeName,
    /// It should own none.
    pub(in super::super) draining: bool,
}

#[async_trait]
impl Change for SetDraining<'_> {
    type Answer = bool;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<bool>, StoreError> {
        session.execute(next_version()).await?;
        let sql = "UPDATE node SET draining = ? WHERE name = ?";
        let values = vec![i64::from(self.draining).into(), name_value(self.name)];
        Ok(if_one(session.execute(Statement::new(sql, values)).await?))
    }
}

fn if_one(matched: u64) -> End<bool> {
    if matched == 1 { End::Commit(true) } else { End::RollBack(false) }
}
