//! Connections to a server that belong to no shard: whoever uses one names the schema in each statement, or
//! says first which one is meant.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{sync::Semaphore, time::Instant};

use super::{
    connect::{Role, connect},
    server,
    session::MySqlSession,
};
use crate::{
    error::{ErrorClass, StoreError},
    mysql_address::Target,
};

/// So soon a connection that observes is replaced: the address may lead to another server. A claim that fails
/// replaces it at once, because what it saw may be of a server that was switched off.
pub(super) const AGE_MAX: Duration = Duration::from_secs(10);
/// The most connections of one [`Links`] at a time. All shards of a server may be asked at once, as when the
/// node that owned them has died.
const LINKS_MAX: usize = 8;
/// The most that are kept for the next who asks.
const IDLE_MAX: usize = 2;

/// One connection to a server.
pub(super) struct Link {
    /// The connection. Its default schema is that of its last user.
    pub(super) session: MySqlSession,
    /// Which server answers at its other end, see [`server::Server`].
    pub(super) identity: String,
    /// When it was opened.
    pub(super) opened: Instant,
}

impl Link {
    /// Makes a schema the default one.
    pub(super) async fn enter(&mut self, schema: &str) -> Result<(), StoreError> {
        // The name contains no backtick, see options.rs.
        self.session.run(format!("USE `{schema}`")).await
    }
}

/// Work on a connection.
#[async_trait]
pub(super) trait Visit: Send + Sync {
    /// Its result.
    type Answer: Send + 'static;

    /// Does it. May be called again after the connection was lost.
    async fn visit(&self, link: &mut Link) -> Result<Self::Answer, StoreError>;
}

/// A few connections for those who ask alone.
pub(super) struct Links {
    /// How to connect, without a schema.
    target: Target,
    /// Connections that nobody uses.
    idle: Mutex<Vec<Link>>,
    /// Bounds how many there are.
    room: Semaphore,
}

impl Links {
    /// Connects when first used.
    pub(super) fn new(target: Target) -> Self {
        Self { target, idle: Mutex::default(), room: Semaphore::new(LINKS_MAX) }
    }

    /// Opens a connection that the caller keeps.
    pub(super) async fn open(&self) -> Result<Link, StoreError> {
        let mut session = connect(&self.target, Role::Shared).await?;
        let identity = server::identity_of(&mut session).await?;
        Ok(Link { session, identity, opened: Instant::now() })
    }

    /// Lends a young connection that nobody else uses meanwhile. A visit that finds a kept connection lost is
    /// repeated on a new one. A future that is dropped takes its connection along.
    pub(super) async fn lend<V: Visit>(&self, visit: &V) -> Result<V::Answer, StoreError> {
        // It is never closed.
        let _room = self.room.acquire().await.ok();
        if let Some(mut link) = self.take_idle() {
            let done = visit.visit(&mut link).await;
            let lost = !link.session.is_usable();
            self.keep(link);
            match done {
                Err(error) if lost && error.class == ErrorClass::Disconnected => {}
                done => return done,
            }
        }
        let mut link = self.open().await?;
        let done = visit.visit(&mut link).await;
        self.keep(link);
        done
    }

    /// The connections that are kept may lead to a server that was switched off.
    pub(super) fn forget(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take_idle(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|link| link.opened.elapsed() < AGE_MAX);
        idle.pop()
    }

    fn keep(&self, link: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if link.session.is_usable() && idle.len() < IDLE_MAX {
            idle.push(link);
        }
    }
}
