//! The connections to a catalog: kept between calls, and replaced when they are lost.

use std::time::Duration;

use async_trait::async_trait;
use tokio::{sync::Mutex, time::Instant};

use super::{
    call::{Call, Failure},
    session::CatalogSession,
};
use crate::{
    error::{ErrorClass, MigrateError, StoreError},
    sql::{
        Session,
        version::{self, Identity, Schema},
    },
};

/// A connection that is idle for longer is replaced before it is used: the server closes one after 15 s.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// How often a call is repeated that had no effect.
const REPEATS_MAX: u32 = 5;

/// Opens connections to a catalog.
#[async_trait]
pub(crate) trait Connector: Send + Sync + 'static {
    /// The connection that it opens.
    type Session: CatalogSession;
    /// Opens a connection.
    async fn connect(&self) -> Result<Self::Session, StoreError>;
    /// Creates or upgrades the schema.
    async fn migrate(&self, identity: &dyn Identity) -> Result<Vec<u32>, MigrateError>;
    /// The schema.
    fn schema(&self) -> &'static Schema;
    /// The connections that it keeps.
    fn connections(&self) -> &Connections<Self::Session>;
}

/// The connections that are kept. Beats have one that never waits for the lock of the cluster's row: a change
/// that hangs must not make its node look dead. Nor does it wait for records of calls, which may be many.
pub(crate) struct Connections<S> {
    /// For beats and reads.
    pub(super) beats: CachedConnection<S>,
    /// For changes.
    pub(super) changes: CachedConnection<S>,
    /// For records of calls, and to read tokens.
    pub(super) records: CachedConnection<S>,
    /// For sessions of browsers: a crowd of readers of pages holds up neither records nor tokens.
    pub(super) sessions: CachedConnection<S>,
}

impl<S> Default for Connections<S> {
    fn default() -> Self {
        let none = || CachedConnection(Mutex::new(None));
        Self { beats: none(), changes: none(), records: none(), sessions: none() }
    }
}

/// A connection, if there is one, and when it was last used. One call at a time has it.
pub(super) struct CachedConnection<S>(Mutex<Option<(S, Instant)>>);

impl<S: CatalogSession> CachedConnection<S> {
    /// Runs a call. If it had no effect because of a conflict, or because a kept connection was lost, it is
    /// repeated. If this future is dropped, the connection is closed, and an open transaction rolls back.
    pub(super) async fn run<C: Call>(
        &self,
        connector: &impl Connector<Session = S>,
        call: &C,
    ) -> Result<C::Answer, StoreError> {
        let mut kept = self.0.lock().await;
        let mut repeats = 0;
        loop {
            let usable = kept.take().filter(|(_, used)| used.elapsed() < IDLE_MAX);
            let is_fresh = usable.is_none();
            let mut session = match usable {
                Some((session, _)) => session,
                None => connector.connect().await?,
            };
            let Failure { error, repeatable } = match call.run(&mut session).await {
                Ok(answer) => {
                    *kept = Some((session, Instant::now()));
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            // Ends a transaction that still holds locks. The connection is not used again in any case.
            let _ = session.rollback().await;
            let again = match error.class {
                ErrorClass::Replay => true,
                ErrorClass::Disconnected | ErrorClass::NotPrimary => !is_fresh,
                _ => false,
            };
            if !again || !repeatable || repeats == REPEATS_MAX {
                return Err(explain(&mut session, connector.schema(), error).await);
            }
            tracing::debug!(%error, "a call of the catalog is repeated");
            repeats += 1;
        }
    }
}

/// If the schema is the reason, says what to do about it.
async fn explain(session: &mut dyn Session, schema: &Schema, error: StoreError) -> StoreError {
    if error.class != ErrorClass::Schema {
        return error;
    }
    match version::check(session, schema).await {
        Err(reason) if reason.class == ErrorClass::Schema => reason,
        _ => error,
    }
}
