//! Named locks, which identify a writing connection so that it can be killed. They protect nothing: the
//! fence does.
//!
//! A connection id may be reused after the server restarts. A random lock name is never reused.

use std::time::Duration;

use forebay_types::Incarnation;

use super::session::MySqlSession;
use crate::{
    error::{ErrorClass, StoreError},
    sql::{Session as _, Statement, int_of},
};

/// How long to wait for a killed connection's rollback. After that, the fence's row lock makes us wait.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// How often to check whether a killed connection is gone.
const KILL_CHECK_EVERY: Duration = Duration::from_millis(10);

/// Lock names of one owner's writing connections. Each name is used by one connection only.
#[derive(Debug, Clone)]
pub(super) struct LockNames {
    /// The owner's random name.
    incarnation: Incarnation,
    /// How many names were given out.
    given: u32,
}

impl LockNames {
    /// The names of an owner's connections.
    pub(super) fn new(incarnation: Incarnation) -> Self {
        Self { incarnation, given: 0 }
    }

    /// A new name.
    pub(super) fn next(&mut self) -> String {
        self.given += 1;
        format!("forebay.{:?}.w{}", self.incarnation, self.given)
    }
}

/// Acquires a lock whose name nobody else uses.
pub(super) async fn acquire(session: &mut MySqlSession, name: &str) -> Result<(), StoreError> {
    let rows = session.fetch(Statement::new("SELECT GET_LOCK(?, 0)", vec![name.into()])).await?;
    match int_of(&rows)? {
        Some(1) => Ok(()),
        other => {
            Err(StoreError::new(ErrorClass::Disconnected, format!("GET_LOCK({name}) returned {other:?}")))
        }
    }
}

/// Kills the connection that holds a lock, if there is one, and waits until its transaction is over.
pub(super) async fn kill_holder(session: &mut MySqlSession, name: &str) -> Result<(), StoreError> {
    if name.is_empty() {
        return Ok(());
    }
    let Some(id) = holder(session, name).await? else { return Ok(()) };
    let schema = session.address().to_owned();
    tracing::info!(connection = id, schema, "killing connection {id} of {schema}, which was replaced");
    match session.run(format!("KILL CONNECTION {id}")).await {
        // If it survives, its row locks make us wait.
        Err(error) if session.is_usable() => {
            tracing::debug!(connection = id, schema, %error, "KILL failed; waiting for its row locks");
        }
        done => done?,
    }
    // A connection loses its named locks after its transaction is rolled back.
    let deadline = tokio::time::Instant::now() + KILL_TIMEOUT;
    while tokio::time::Instant::now() < deadline && holder(session, name).await?.is_some() {
        tokio::time::sleep(KILL_CHECK_EVERY).await;
    }
    Ok(())
}

async fn holder(session: &mut MySqlSession, name: &str) -> Result<Option<i64>, StoreError> {
    let rows = session.fetch(Statement::new("SELECT IS_USED_LOCK(?)", vec![name.into()])).await?;
    int_of(&rows)
}
