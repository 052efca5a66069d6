//! Named locks, by which a connection can be found and killed. They guard nothing: the fence does.
//!
//! Connection ids start anew after a restart of the server, and a random name never means another
//! connection than the one that took it.

use std::time::Duration;

use forebay_types::Incarnation;

use super::session::MySqlSession;
use crate::{
    ErrorClass, StoreError,
    sql::{Session as _, Statement, int_of},
};

/// How long a killed connection may take to roll back before we go on and wait for its row locks instead.
const DYING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// LockNames that are used by one owner only, each by one connection only.
#[derive(Debug, Clone)]
pub(super) struct LockNames {
    incarnation: Incarnation,
    kind: char,
    given: u32,
}

impl LockNames {
    /// `kind` tells the owner's connections apart.
    pub(super) fn new(incarnation: Incarnation, kind: char) -> Self {
        Self { incarnation, kind, given: 0 }
    }

    pub(super) fn next(&mut self) -> String {
        self.given += 1;
        format!("forebay.{:?}.{}{}", self.incarnation, self.kind, self.given)
    }
}

/// Takes a name that nobody else knows.
pub(super) async fn take(session: &mut MySqlSession, name: &str) -> Result<(), StoreError> {
    let rows = session.fetch(Statement::new("SELECT GET_LOCK(?, 0)", vec![name.into()])).await?;
    match int_of(&rows)? {
        Some(1) => Ok(()),
        other => Err(StoreError::new(ErrorClass::Other, format!("GET_LOCK({name}) answered {other:?}"))),
    }
}

/// Kills the connection that holds a name, if one does, and waits until its transaction is over.
pub(super) async fn kill_holder(session: &mut MySqlSession, name: &str) -> Result<(), StoreError> {
    if name.is_empty() {
        return Ok(());
    }
    let Some(id) = holder(session, name).await? else { return Ok(()) };
    tracing::info!(connection = id, "killing a connection of the shard's old owner");
    match session.run(format!("KILL CONNECTION {id}")).await {
        // Where it could not be killed, its row locks make us wait.
        Err(error) if session.is_usable() => tracing::debug!(%error, "KILL"),
        done => done?,
    }
    // A connection's named locks go after its transaction is rolled back.
    let deadline = tokio::time::Instant::now() + DYING;
    while tokio::time::Instant::now() < deadline && holder(session, name).await?.is_some() {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

async fn holder(session: &mut MySqlSession, name: &str) -> Result<Option<i64>, StoreError> {
    let rows = session.fetch(Statement::new("SELECT IS_USED_LOCK(?)", vec![name.into()])).await?;
    int_of(&rows)
}
