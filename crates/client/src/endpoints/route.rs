//! Where a call would rather go than elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a call would rather go than elsewhere.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// Calls go to all servers in turn.
    InTurn,
    /// To the server of this id, which most likely owns the shard.
    To(u32),
    /// To the server of the call before, while it works.
    Sticky(Sticky),
}

/// The server that a sequence of calls stays with; shared by clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sticky(Arc<Mutex<Option<u32>>>);

impl Route {
    /// A new sequence of calls that stay with one server.
    pub(crate) fn sticky() -> Self {
        Self::Sticky(Sticky::default())
    }

    /// The same, but to the server of this id if calls go to all in turn.
    pub(crate) fn or_to(&self, id: Option<u32>) -> Self {
        match (self, id) {
            (Self::InTurn, Some(id)) => Self::To(id),
            _ => self.clone(),
        }
    }
}

impl Sticky {
    /// The server's id. While it is held, no other call of the sequence chooses.
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<u32>> {
        // A panic while the lock is held leaves a valid id.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
